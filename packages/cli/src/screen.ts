// A session on a terminal: its chunks as text.
import type { Chunk, Session } from '@signalbox/client';
import { sourceText } from './commands/message-text.ts';
import { stateOf } from './session-state.ts';
import { counted, shown, shownLines } from './text.ts';

/** Formats chunks: text as it arrives, everything else on separate lines. */
export class Screen {
  #isInText = false;
  /** The reasoning or the input that is being shown. */
  #part: string | undefined;

  /** A separate line, after a line break if text was printed before it. */
  line(text: string): string {
    return `${this.endOfText()}${text}\n`;
  }

  /** The line break after text, if there was any. */
  endOfText(): string {
    const end = this.#isInText ? '\n' : '';
    this.#isInText = false;
    this.#part = undefined;
    return end;
  }

  /** Text of another kind, after `mark`. It continues on its line until something else follows. */
  #aside(mark: string, delta: string, part = mark): string {
    const begins = this.#part !== part;
    const before = begins ? `${this.#isInText ? '\n' : ''}${mark}` : '';
    this.#isInText = true;
    this.#part = part;
    return `${before}${shownLines(delta)}`;
  }

  show(chunk: Chunk): string {
    switch (chunk.type) {
      case 'message.chunk': {
        const sources = (chunk.sources ?? []).map((source) => `   ${sourceText(source)}`);
        const list = sources.length === 0 ? '' : this.line(`Sources:\n${sources.join('\n')}`);
        if (chunk.delta === '') return list;
        const before = this.#part === undefined ? '' : '\n';
        this.#part = undefined;
        this.#isInText = true;
        return `${before}${shownLines(chunk.delta)}${list}`;
      }
      case 'reasoning.chunk':
        return this.#aside('~  ', chunk.delta);
      case 'tool.input.chunk':
        return this.#aside(`.. ${shown(chunk.toolName)} `, chunk.delta, chunk.toolCallId);
      case 'message.reset':
        return this.line('-- Ignore the text since the last line: it is void.');
      case 'tool.call':
        return this.line(`${chunk.notRun ? '-x' : '->'} ${shown(chunk.tool)} ${shown(JSON.stringify(chunk.input))}`);
      case 'tool.result':
        return this.line(`<- ${resultOf(chunk)}`);
      case 'approval.requested':
        return this.line(
          `?  ${shown(chunk.name)} ${shown(JSON.stringify(chunk.input))}\n   signalbox approvals approve ${chunk.operationId}`,
        );
      case 'approval.decided':
        return this.line(`!  ${chunk.progress.approved} of ${chunk.progress.required} approvals`);
      case 'approval.resolved':
        return this.line(`!  ${chunk.decision}${chunk.reason === undefined ? '' : `: ${shown(chunk.reason)}`}`);
      case 'session.status':
        return this.line(`-- ${stateOf({ stopReason: null, ...chunk } as unknown as Session)}`);
      case 'context.compacted': {
        const { untilTurn, tokensBefore, tokensAfter, summary } = chunk;
        const before = `-- summarized the messages up to turn ${untilTurn}: ${tokensBefore} -> ${tokensAfter} tokens`;
        return this.line(`${before}${summary === '' ? '' : `\n   ${shown(summary)}`}`);
      }
      case 'turn.completed':
        return this.line(
          `-- turn ${chunk.turn} ended: ${chunk.error ? errorOf(chunk.error) : chunk.stopReason} (${tokensOf(chunk.usage)})`,
        );
      case 'file.created':
        return this.line(`+  ${chunk.file.fileId} ${chunk.file.mediaType}, ${counted(chunk.file.bytes, 'byte')}`);
      default:
        // A chunk type of a newer service.
        return '';
    }
  }
}

/** `1200 tokens in (800 cached, 100 written to the cache), 50 out, 2 searches`. */
function tokensOf({
  inputTokens,
  outputTokens,
  cachedTokens,
  cacheWriteTokens = 0,
  webSearches = 0,
}: Session['usage']): string {
  const cache = [
    cachedTokens > 0 && `${cachedTokens} cached`,
    cacheWriteTokens > 0 && `${cacheWriteTokens} written to the cache`,
  ].filter((part) => part !== false);
  return `${inputTokens} tokens in${cache.length > 0 ? ` (${cache.join(', ')})` : ''}, ${outputTokens} out${
    webSearches > 0 ? `, ${counted(webSearches, 'search', 'searches')}` : ''
  }`;
}

function errorOf({ code, message }: NonNullable<Session['error']>): string {
  return `${shown(code)}: ${shown(message)}`;
}

function resultOf({ output, error, outcomeUnknown }: Extract<Chunk, { type: 'tool.result' }>): string {
  const words = error === undefined ? shown(JSON.stringify(output)) : `error: ${shown(error)}`;
  return outcomeUnknown ? `${words} (it is not known whether the call had an effect)` : words;
}
