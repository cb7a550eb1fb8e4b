// The last step before a request: makes its messages valid by the rules of the server that they go to, and loses nothing of them. Pure.
//
// What it makes of a message depends on that message and the ones before it, so a longer transcript begins with the same messages:
// only the last may differ, because the next may be joined to it. Providers cache that beginning, and some check it.
import { createHash } from 'node:crypto';
import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { PromptRules } from '../model/prompt-rules.ts';

type MessageOf<R extends LanguageModelV4Message['role']> = Extract<LanguageModelV4Message, { role: R }>;
type Assistant = MessageOf<'assistant'>;
type Call = Extract<Assistant['content'][number], { type: 'tool-call' }>;
type Result = LanguageModelV4ToolResultPart;
type UserPart = LanguageModelV4TextPart | LanguageModelV4FilePart;

/**
 * `ownIds`: the ids that the server itself gave calls, by ours. `continues`: the prompt ends with a response that its provider has
 * paused, and continues without a message. The prompt may have a system message first, and no other. The result
 * begins with the system message and a user message, and ends with a user message or the results of tools.
 */
export function validPrompt(
  prompt: readonly LanguageModelV4Message[],
  rules: PromptRules,
  {
    ownIds = new Map(),
    continues = false,
  }: { ownIds?: ReadonlyMap<string, string>; continues?: boolean | undefined } = {},
): LanguageModelV4Message[] {
  const written = prompt.flatMap((message) => withoutBlank(message, rules));
  const answered = withEveryResult(written);
  return inTurns(rules.parallelCalls ? answered : oneCallEach(answered), rules, continues).map(renaming(rules, ownIds));
}

const isBlank = (text: string) => text.trim() === '';
const textPart = (text: string): LanguageModelV4TextPart => ({ type: 'text', text });

/** Most servers refuse a text without characters, and a message without content. */
function withoutBlank(
  message: LanguageModelV4Message,
  { keepsSealedTexts, textBesideCalls }: PromptRules,
): LanguageModelV4Message[] {
  const isWritten = (part: { type: string; text?: unknown; providerOptions?: object }) =>
    part.type !== 'text' || !isBlank(String(part.text)) || (keepsSealedTexts && part.providerOptions !== undefined);
  switch (message.role) {
    case 'system':
      return isBlank(message.content) ? [] : [message];
    case 'user': {
      const content = message.content.filter(isWritten);
      return [{ ...message, content: content.length > 0 ? content : [textPart('(a message without text)')] }];
    }
    case 'assistant': {
      const content = message.content.filter(isWritten);
      if (content.every(({ type }) => type === 'reasoning')) return [];
      const hasText = !textBesideCalls || content.some(({ type }) => type === 'text');
      return [{ ...message, content, ...(!hasText && { providerOptions: withEmptyText(message.providerOptions) }) }];
    }
    case 'tool':
      return [{ ...message, content: message.content.map(withOutput) }];
  }
}

/** The SDK would send null. */
function withEmptyText(options: SharedV4ProviderOptions = {}): SharedV4ProviderOptions {
  return { ...options, openaiCompatible: { ...options.openaiCompatible, content: '' } };
}

const NO_OUTPUT = '(no output)';

function withOutput(part: MessageOf<'tool'>['content'][number]): MessageOf<'tool'>['content'][number] {
  if (part.type !== 'tool-result') return part;
  const { output } = part;
  if ((output.type === 'text' || output.type === 'error-text') && isBlank(output.value))
    return { ...part, output: { ...output, value: NO_OUTPUT } };
  if (output.type !== 'content') return part;
  const value = output.value.filter((one) => one.type !== 'text' || !isBlank(one.text));
  return { ...part, output: { ...output, value: value.length > 0 ? value : [textPart(NO_OUTPUT)] } };
}

/**
 * Each call has its result directly after it, in the order of the calls. A result that has no call before it, or that comes after
 * another message, becomes a text.
 */
function withEveryResult(messages: readonly LanguageModelV4Message[]): LanguageModelV4Message[] {
  const out: LanguageModelV4Message[] = [];
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    if (message.role === 'tool') {
      out.push(asUser(resultsIn([message])));
      continue;
    }
    out.push(message);
    if (message.role !== 'assistant') continue;
    const calls = callsIn(message);
    if (calls.length === 0) continue;
    const following: MessageOf<'tool'>[] = [];
    for (let next = messages[at + 1]; next?.role === 'tool'; next = messages[at + 1]) {
      following.push(next);
      at += 1;
    }
    const results = new Map(calls.map(({ toolCallId }) => [toolCallId, undefined as Result | undefined]));
    const others: Result[] = [];
    for (const result of resultsIn(following)) {
      const isWanted = results.has(result.toolCallId) && results.get(result.toolCallId) === undefined;
      if (isWanted) results.set(result.toolCallId, result);
      else others.push(result);
    }
    out.push({ role: 'tool', content: calls.map((call) => results.get(call.toolCallId) ?? noResult(call)) });
    if (others.length > 0) out.push(asUser(others));
  }
  return out;
}

/** Without what the provider ran itself: its result is in the same message. */
const isCall = (part: Assistant['content'][number]): part is Call =>
  part.type === 'tool-call' && !part.providerExecuted;
const callsIn = ({ content }: Assistant) => content.filter(isCall);
const resultsIn = (messages: readonly MessageOf<'tool'>[]) =>
  messages.flatMap(({ content }) => content.filter((part): part is Result => part.type === 'tool-result'));

/** A turn that failed under an earlier release left its last calls without, and its session can be forked. */
function noResult({ toolCallId, toolName }: Call): Result {
  const value = 'Error: The turn failed before this call had a result.';
  return { type: 'tool-result', toolCallId, toolName, output: { type: 'error-text', value } };
}

function asUser(results: readonly Result[]): MessageOf<'user'> {
  return {
    role: 'user',
    content: results.flatMap(({ toolName, output }): UserPart[] => {
      const heading = `The result of an earlier call${toolName === '' ? '' : ` of ${toolName}`}:`;
      if (output.type === 'content') {
        const parts = output.value.filter((part): part is UserPart => part.type === 'text' || part.type === 'file');
        return [textPart(heading), ...parts];
      }
      const value = output.type === 'execution-denied' ? (output.reason ?? 'denied') : output.value;
      return [textPart(`${heading}\n${typeof value === 'string' ? value : JSON.stringify(value)}`)];
    }),
  };
}

function oneCallEach(messages: readonly LanguageModelV4Message[]): LanguageModelV4Message[] {
  return messages.flatMap((message, at): LanguageModelV4Message[] => {
    if (message.role === 'tool') return [];
    const results = messages[at + 1];
    if (message.role !== 'assistant' || results?.role !== 'tool') return [message];
    const calls = callsIn(message);
    return calls.flatMap((call, index): LanguageModelV4Message[] => {
      const content = index === 0 ? [...message.content.filter((part) => !isCall(part)), call] : [call];
      return [
        { ...message, content },
        { role: 'tool', content: [results.content[index]!] },
      ];
    });
  });
}

/**
 * Between two parts of a response that its token limit has cut, and after such a part. Most models refuse a transcript that ends with
 * their own message. It is not in the transcript, because it has no sender; where it belongs follows from the roles.
 */
const CONTINUE = textPart(
  'Your response was cut off by its token limit. Continue exactly where it ended. Do not repeat any of it, and do not comment on this.',
);
const EARLIER = textPart('(The conversation began earlier.)');
/** The model's, where a user message may not follow the results of tools. */
const HAS_RESULTS = textPart('I have the results.');

/** System, user, assistant, and so on: no two messages of one role follow each other. */
function inTurns(
  messages: readonly LanguageModelV4Message[],
  rules: PromptRules,
  continues: boolean,
): LanguageModelV4Message[] {
  const out: LanguageModelV4Message[] = [];
  const add = (message: LanguageModelV4Message) => {
    const before = out.at(-1);
    if (message.role === 'user' && before?.role === 'user')
      out[out.length - 1] = { ...before, content: joined([...before.content, ...message.content], rules) };
    else out.push(message.role === 'user' ? { ...message, content: joined(message.content, rules) } : message);
  };
  for (const message of messages) {
    const before = out.at(-1)?.role;
    const isFirst = before === undefined || before === 'system';
    if (message.role === 'assistant' && isFirst) add({ role: 'user', content: [EARLIER] });
    if (message.role === 'assistant' && before === 'assistant') add({ role: 'user', content: [CONTINUE] });
    if (message.role === 'user' && before === 'tool' && !rules.userAfterTool)
      add({ role: 'assistant', content: [HAS_RESULTS] });
    add(message);
  }
  if (out.at(-1)?.role === 'assistant' && !continues) add({ role: 'user', content: [CONTINUE] });
  return out;
}

function joined(parts: readonly UserPart[], { joinsTexts }: PromptRules): UserPart[] {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return joinsTexts && texts.length === parts.length && texts.length > 1 ? [textPart(texts.join('\n\n'))] : [...parts];
}

/** Ids as the server accepts them: the same in a call and in its result, and each once in a request. */
function renaming(rules: PromptRules, ownIds: ReadonlyMap<string, string>) {
  const sent = new Map<string, string>();
  const used = new Set<string>();
  const idOf = (id: string): string => {
    const known = sent.get(id);
    if (known !== undefined) return known;
    const own = ownIds.get(id);
    let text = own !== undefined && rules.ownId?.test(own) ? own : id;
    const isFree = () => (rules.id.test(text) || (text === own && rules.ownId?.test(text))) && !used.has(text);
    for (let salt = ''; !isFree(); salt += '+') text = nineOf(id + salt);
    used.add(text);
    sent.set(id, text);
    return text;
  };
  const renamed = <T extends { toolCallId: string }>(part: T): T => ({ ...part, toolCallId: idOf(part.toolCallId) });
  return (message: LanguageModelV4Message): LanguageModelV4Message => {
    if (message.role === 'assistant')
      return { ...message, content: message.content.map((part) => (isCall(part) ? renamed(part) : part)) };
    if (message.role !== 'tool') return message;
    return {
      ...message,
      content: message.content.map((part) => (part.type === 'tool-result' ? renamed(part) : part)),
    };
  };
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

function nineOf(id: string): string {
  const bytes = createHash('sha256').update(id).digest();
  return Array.from({ length: 9 }, (_, at) => LETTERS[bytes[at]! % LETTERS.length]).join('');
}
