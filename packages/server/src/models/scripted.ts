// A model that follows a script in its agent's definition (`model.settings.script`), for integration tests and the first run. It
// needs no network and is deterministic: the same call gets the same response, with the same token counts.
//
// The n-th model call of a session uses the n-th step of the script; after the last step, that step repeats. Failed calls count
// too, so a script can fail once and then succeed. Placeholders in the text and in strings of the tool calls' inputs:
//
//   {{input}}            the text of the last user message
//   {{lastToolResult}}   the last tool result: a string as it is, an error's text, anything else as JSON
import type { ScriptStep } from '@signalbox/contract';
import { newUuid } from '../lib/ids.ts';
import { jsonOf } from '../lib/json/json-text.ts';
import type { TokenUsage } from '../session-rows/operations.ts';
import { type AskModel, type ModelCall, ModelFailure } from './model/model.ts';

/** The step of an agent without a script: it echoes the input. */
const ECHO: ScriptStep = { text: '{{input}}' };

/** The limit of a response: a message can be long, and a script can repeat it many times. */
const RESPONSE_MAX_CHARACTERS = 1_000_000;

const SUMMARY_WORDS = 40;

export function createScriptedModel(clock: { sleep(ms: number, signal: AbortSignal): Promise<void> }): AskModel {
  return async function* ask(call, signal) {
    signal.throwIfAborted();
    if (call.purpose === 'summary') return yield* summary(call);
    const step = stepOf(call);
    if (step.failWith === 'rejected') {
      throw new ModelFailure('model_rejected', 'The script lets the model reject the request', { retryable: false });
    }
    if (step.failWith === 'timeout') {
      throw new ModelFailure('model_timeout', 'The script lets the model time out', { retryable: true });
    }
    if (step.failWith === 'rate_limited') {
      throw new ModelFailure('model_rate_limited', 'The script limits the model’s rate', { retryable: true });
    }
    if (step.failWith === 'unavailable') {
      throw new ModelFailure('model_unavailable', 'The script makes the model unavailable', { retryable: true });
    }

    const fillIn = createFillIn(call);
    if (call.shows?.reasoning) {
      for (const delta of wordsOf(fillIn(step.reasoning ?? ''))) {
        if (step.tokenDelayMs) await clock.sleep(step.tokenDelayMs, signal);
        signal.throwIfAborted();
        yield { type: 'reasoning', delta };
      }
    }
    const words = wordsOf(fillIn(step.text ?? ''));
    const breaks = step.failWith === 'broken_stream';
    for (const word of breaks ? words.slice(0, Math.ceil(words.length / 2)) : words) {
      if (step.tokenDelayMs) await clock.sleep(step.tokenDelayMs, signal);
      signal.throwIfAborted();
      yield { type: 'text', delta: word };
    }
    if (breaks) {
      throw new ModelFailure('model_unavailable', 'The script breaks the model’s stream', { retryable: true });
    }

    const refuses = step.failWith === 'refusal';
    const isCut = step.failWith === 'max_output_tokens';
    const calls = refuses
      ? []
      : (step.toolCalls ?? []).map(({ name, input = {} }) => ({
          name,
          input: mapStrings(input, fillIn),
          ...(call.shows?.toolInput && { operationId: newUuid() }),
        }));
    for (const { operationId, name, input } of calls) {
      if (operationId === undefined) continue;
      for (const delta of wordsOf(JSON.stringify(input))) {
        if (step.tokenDelayMs) await clock.sleep(step.tokenDelayMs, signal);
        signal.throwIfAborted();
        yield { type: 'toolInput', operationId, name, delta };
      }
    }
    for (const asked of calls) yield { type: 'toolCall', ...asked };
    const usage = usageOf(call, [...words, ...calls.map(({ input }) => JSON.stringify(input))].join(' '));
    const reason = refuses ? 'refusal' : isCut ? 'maxOutputTokens' : calls.length > 0 ? 'toolCalls' : 'endTurn';
    yield { type: 'finish', reason, usage };
  };
}

function wordsOf(text: string): string[] {
  return text.match(/\s*\S+|\s+$/g) ?? [];
}

/** No step of the script: the beginning of what it summarizes. */
async function* summary(call: ModelCall): ReturnType<AskModel> {
  const [part] = call.transcript[0]!.content;
  const words = part?.type === 'text' ? (part.text.replace(/<[^>]*>/g, ' ').match(/\S+/g) ?? []) : [];
  const text = `The conversation began: ${words.slice(0, SUMMARY_WORDS).join(' ')}`;
  yield { type: 'text', delta: text };
  yield { type: 'finish', reason: 'endTurn', usage: usageOf(call, text) };
}

function stepOf({ config, callsBefore }: ModelCall): ScriptStep {
  const script = config.settings?.script ?? [];
  return script[Math.min(callsBefore, script.length - 1)] ?? ECHO;
}

/** Fills in placeholders until the response has its maximum length. Inserted text is not searched for placeholders. */
function createFillIn({ transcript }: ModelCall): (text: string) => string {
  const user = transcript.findLast(({ role }) => role === 'user')?.content ?? [];
  const input = user.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
  const result = transcript.flatMap(({ content }) => content).findLast((part) => part.type === 'tool_result');
  const lastToolResult = result?.type === 'tool_result' ? (result.error ?? textOf(result.output)) : '';

  let room = RESPONSE_MAX_CHARACTERS;
  return (text) => {
    let filled = '';
    for (const part of text.split(/(\{\{(?:input|lastToolResult)\}\})/)) {
      const value = part === '{{input}}' ? input : part === '{{lastToolResult}}' ? lastToolResult : part;
      filled += value.slice(0, room);
      room -= Math.min(room, value.length);
    }
    // The cut may have split a surrogate pair.
    return filled.toWellFormed();
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : jsonOf(value);
}

function mapStrings(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, map));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mapStrings(item, map)]));
}

/** Each word of the prompt and of the response counts as a token. */
function usageOf({ instructions, transcript }: ModelCall, response: string): TokenUsage {
  const texts = transcript
    .flatMap(({ content }) => content)
    .map((part) => {
      if (part.type === 'text') return part.text;
      if (part.type === 'file') return part.filename ?? part.fileId;
      return part.type === 'tool_call' ? textOf(part.input) : (part.error ?? textOf(part.output));
    });
  return {
    inputTokens: countWords([instructions, ...texts].join(' ')),
    outputTokens: countWords(response),
    cachedTokens: 0,
  };
}

function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}
