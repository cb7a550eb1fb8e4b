// The names that OpenTelemetry publishes for attributes of spans, and the values that it publishes for some of them.
import * as conventions from '@opentelemetry/semantic-conventions/incubating';

function textsOf(prefix: string): ReadonlySet<string> {
  const texts = Object.entries(conventions).flatMap(([name, value]) =>
    name.startsWith(prefix) && typeof value === 'string' ? [value] : [],
  );
  return new Set(texts);
}

const attributes = textsOf('ATTR_');
/** Names that the conventions have replaced by others. */
const replaced = new Set([
  'gen_ai.system',
  'gen_ai.prompt',
  'gen_ai.completion',
  'gen_ai.usage.prompt_tokens',
  'gen_ai.usage.completion_tokens',
]);
const values: Readonly<Record<string, ReadonlySet<string>>> = {
  'gen_ai.operation.name': textsOf('GEN_AI_OPERATION_NAME_VALUE_'),
  'gen_ai.output.type': textsOf('GEN_AI_OUTPUT_TYPE_VALUE_'),
  // The last are models that no provider runs.
  'gen_ai.provider.name': new Set([
    ...textsOf('GEN_AI_PROVIDER_NAME_VALUE_'),
    ...['scripted', 'worker', 'openai-compatible'],
  ]),
};

/** What of the attributes of a span, or of a resource, is not in the conventions, and not named as our own. */
export function unknownIn(given: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(given).flatMap(([name, value]) => {
    if (name.startsWith('signalbox.')) return [];
    if (!attributes.has(name) || replaced.has(name)) return [name];
    return values[name]?.has(String(value)) === false ? [`${name}: ${String(value)}`] : [];
  });
}
