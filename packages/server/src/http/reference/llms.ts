// `/llms.txt`: the API in a few pages of text, for language models that write programs against it.
import type { OpenApiDocument } from './openapi.ts';

/** The text, in the order of the reference. */
export function llmsText({ info, tags, paths }: OpenApiDocument): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, ...operation })),
  );
  const sections = tags.map(({ name, description }) => {
    const lines = operations
      .filter((operation) => operation.tags.includes(name))
      .map(({ method, path, summary, operationId }) => `- \`${method} ${path}\`: ${summary} (\`${operationId}\`)`);
    return [`## ${name}`, '', description, '', ...lines].join('\n');
  });
  const files = [
    '## Files',
    '',
    '- [OpenAPI document](/openapi.json): every operation with its schemas, errors, examples and a TypeScript program',
    '- [API reference](/docs): the same, for people',
  ].join('\n');
  const [introduction = '', ...rest] = info.description.split('\n\n');
  return `${[`# ${info.title}`, `> ${introduction}`, ...rest, ...sections, files].join('\n\n')}\n`;
}
