// A model that answers by its Agent's own script (api.md section 3), for people's integration tests and the first run. It
// needs no network and is deterministic: the same call gets the same answer, to the token count.
//
// The n-th model call of a Session takes the n-th step, the last one repeated. A call that failed counts too, so that a
// script can fail once and then answer. Placeholders stand in the text and in the strings of tool calls' inputs:
//
//   {{input}}            the text of the last user message
//   {{lastToolResult}}   the last tool result: a string as it is, an error's text, anything else as JSON
import type { ScriptStep } from '@signalbox/contract';
import type { TokenUsage } from '../../sessions/state/operations.ts';
import { type AskModel, type ModelCall, ModelFailure } from './model.ts';

/** What an Agent without a script does: it echoes. */
const ECHO: ScriptStep = { text: '{{input}}' };

/** A message can be long and a script can name it often; no answer needs more characters than this. */
const ANSWER_MAX_CHARACTERS = 1_000_000;

export function createScriptedModel(clock: { sleep(ms: number, signal: AbortSignal): Promise<void> }): AskModel {
  return async function* ask(call, signal) {
    signal.throwIfAborted();
    const step = stepOf(call);
    if (step.failWith === 'timeout') {
      throw new ModelFailure('model_timeout', 'The script lets the model time out', { retryable: true });
    }
    if (step.failWith === 'rate_limited') {
      throw new ModelFailure('model_rate_limited', 'The script limits the model’s rate', { retryable: true });
    }

    const fillIn = createFillIn(call);
    const words = fillIn(step.text ?? '').match(/\s*\S+|\s+$/g) ?? [];
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
      : (step.toolCalls ?? []).map(({ name, input = {} }) => ({ name, input: mapStrings(input, fillIn) }));
    for (const { name, input } of calls) yield { type: 'toolCall', name, input };
    const usage = usageOf(call, [...words, ...calls.map(({ input }) => JSON.stringify(input))].join(' '));
    const reason = refuses ? 'refusal' : isCut ? 'maxOutputTokens' : calls.length > 0 ? 'toolCalls' : 'endTurn';
    yield { type: 'finish', reason, usage };
  };
}

function stepOf({ config, callsBefore }: ModelCall): ScriptStep {
  const script = config.settings?.script ?? [];
  return script[Math.min(callsBefore, script.length - 1)] ?? ECHO;
}

/** Fills in placeholders, until the answer has its full length. What is filled in is not read for placeholders again. */
function createFillIn({ transcript }: ModelCall): (text: string) => string {
  const user = transcript.findLast(({ role }) => role === 'user')?.content ?? [];
  const input = user.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
  const result = transcript.flatMap(({ content }) => content).findLast((part) => part.type === 'tool_result');
  const lastToolResult = result?.type === 'tool_result' ? (result.error ?? textOf(result.output)) : '';

  let room = ANSWER_MAX_CHARACTERS;
  return (text) => {
    let filled = '';
    for (const part of text.split(/(\{\{(?:input|lastToolResult)\}\})/)) {
      const value = part === '{{input}}' ? input : part === '{{lastToolResult}}' ? lastToolResult : part;
      filled += value.slice(0, room);
      room -= Math.min(room, value.length);
    }
    // The end may have fallen between the halves of a character.
    return filled.toWellFormed();
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

function mapStrings(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, map));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mapStrings(item, map)]));
}

/** A token is a word, of everything that the model is told and of everything that it answers. */
function usageOf({ instructions, transcript }: ModelCall, answer: string): TokenUsage {
  const told = transcript
    .flatMap(({ content }) => content)
    .map((part) => {
      if (part.type === 'text') return part.text;
      return part.type === 'tool_call' ? textOf(part.input) : (part.error ?? textOf(part.output));
    });
  return {
    inputTokens: countWords([instructions, ...told].join(' ')),
    outputTokens: countWords(answer),
    cachedTokens: 0,
  };
}

function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}
