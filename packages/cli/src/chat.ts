// A conversation with a session. It reads the stream while the session works, and the keyboard while the session waits for a person; never
// both, so that nothing is printed into a line that is being typed.
import { type Approval, type Chunk, type Session, type Signalbox, SignalboxError } from '@signalbox/client';
import { isAfter } from '@signalbox/client/conversation';
import { connectionLog } from './commands/session-history.ts';
import type { LineReader } from './line-reader.ts';
import { retryCommand } from './retry-text.ts';
import { Screen } from './screen.ts';
import { stateOf } from './session-state.ts';
import type { Terminal } from './terminal.ts';
import { shown } from './text.ts';

const ENDED = ['completed', 'failed', 'cancelled'];

export class Chat {
  readonly #client: Signalbox;
  readonly #session: Session;
  readonly #lines: LineReader;
  readonly #terminal: Terminal;
  readonly #screen = new Screen();
  readonly #leaving = new AbortController();
  readonly #toolNames = new Map<string, string>();
  /** Decisions and results that are left to another approver or program. */
  readonly #postponed = new Set<string>();
  #isWorking = false;
  #isInterrupted = false;

  constructor(client: Signalbox, session: Session, lines: LineReader, terminal: Terminal) {
    this.#client = client;
    this.#session = session;
    this.#lines = lines;
    this.#terminal = terminal;
    lines.onInterrupt = () => this.#interrupt();
  }

  /** Ends when the session ends, at the end of the input, and after Ctrl-C between turns. */
  async run(): Promise<void> {
    const { stderr } = this.#terminal;
    const { sessionId, cursor, status } = this.#session;
    const { signal } = this.#leaving;
    if (this.#lines.isTTY)
      await stderr.write(`${sessionId}. Ctrl-C stops a turn; Ctrl-D leaves, and the session stays open.\n`);
    const start = status === 'idle' ? cursor : this.#session.turn < 2 ? null : `turn_${this.#session.turn}:seq_0`;
    const onConnection = connectionLog(this.#terminal);
    const chunks = chunksOf(this.#client.sessions.stream(sessionId, { cursor: start, onConnection }, { signal }));
    let isOver = false;
    try {
      isOver = await this.#converse(chunks);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#leaving.abort();
      // An open stream would keep the process alive.
      await chunks.return(undefined).catch(() => {});
    }
    if (!isOver) await stderr.write(`\nContinue with: signalbox sessions chat ${sessionId}\n`);
  }

  /** True if the session has ended. */
  async #converse(chunks: AsyncGenerator<Chunk>): Promise<boolean> {
    const { sessionId, status } = this.#session;
    // The session may be busy, or wait for a decision.
    let isOver = status === 'idle' ? false : await this.#follow(chunks, null);
    while (!isOver) {
      const text = await this.#lines.ask(this.#terminal.stdout.styled('bold', '> '));
      if (text === undefined || this.#leaving.signal.aborted) return false;
      if (text.trim() === '') continue;
      const sent = await this.#client.sessions.sendMessage(sessionId, { content: text });
      // The stream may still have the end of an earlier turn, which is not the end of this one.
      isOver = await this.#follow(chunks, sent.session.cursor);
    }
    return true;
  }

  /** Shows chunks until the session waits for a message; true if it has ended. */
  async #follow(chunks: AsyncIterator<Chunk>, after: string | null): Promise<boolean> {
    const { stdout } = this.#terminal;
    this.#isWorking = true;
    this.#isInterrupted = false;
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
      const chunk = next.value;
      if (chunk.type === 'tool.call') this.#toolNames.set(chunk.toolCallId, chunk.tool);
      if (isShown(chunk)) await stdout.write(this.#screen.show(chunk));
      if (chunk.type !== 'session.status' || !isAfter(chunk, after)) continue;
      if (ENDED.includes(chunk.status)) break;
      if (chunk.status === 'idle') {
        this.#isWorking = false;
        await stdout.write(this.#screen.endOfText());
        const without = chunk.error?.retryWithout;
        if (without) await stdout.write(`Without it: ${shown(retryCommand(this.#session.sessionId, without))}\n`);
        return false;
      }
      if (chunk.status === 'waiting') await this.#decide(chunk);
    }
    this.#isWorking = false;
    const ended = await this.#client.sessions.get(this.#session.sessionId);
    const error = ended.error ? `: ${shown(ended.error.message)}` : '';
    await stdout.write(this.#screen.line(`The session is ${stateOf(ended)}${error}`));
    return true;
  }

  /** Asks for the decisions and results that the session waits for. */
  async #decide({ waitingFor }: Extract<Chunk, { type: 'session.status' }>): Promise<void> {
    for (const operationId of waitingFor?.operationIds ?? []) await this.#decideApproval(operationId);
    for (const toolCallId of waitingFor?.toolCallIds ?? []) await this.#sendResult(toolCallId);
  }

  async #decideApproval(operationId: string): Promise<void> {
    const { stdout } = this.#terminal;
    if (this.#postponed.has(operationId) || this.#isInterrupted) return;
    const approval = await this.#client.approvals.get(operationId);
    if (approval.status !== 'pending') return;
    if (approval.refusal) {
      this.#postponed.add(operationId);
      return stdout.write(this.#screen.line(`?  not for this key to decide: ${shown(approval.refusal.message)}`));
    }
    const decision = await this.#askForDecision(approval);
    if (!decision) {
      this.#postponed.add(operationId);
      if (!this.#isInterrupted) await stdout.write(this.#screen.line('?  waiting for another decision'));
      return;
    }
    await this.#resolve(operationId, decision);
  }

  async #askForDecision(approval: Approval) {
    const { stdout } = this.#terminal;
    const always = approval.allowsSession ? ', [a]lways in this session' : '';
    const question = `   Run ${shown(approval.name)}? [y]es, [n]o, [e]dit the input${always}, [l]ater: `;
    await stdout.write(this.#screen.line(`?  ${shown(approval.name)} ${shown(JSON.stringify(approval.input))}`));
    this.#lines.forgetTyped();
    for (;;) {
      const answer = (await this.#lines.ask(question))?.trim().toLowerCase();
      if (answer === undefined || answer === 'l' || answer === 'later') return undefined;
      if (answer === 'y' || answer === 'yes') return { decision: 'approved' as const };
      if (always !== '' && (answer === 'a' || answer === 'always'))
        return { decision: 'approved' as const, scope: 'session' as const };
      if (answer === 'n' || answer === 'no') {
        const reason = await this.#lines.ask('   Reason, for the agent (optional): ');
        return { decision: 'denied' as const, ...(reason?.trim() && { reason: reason.trim() }) };
      }
      if (answer !== 'e' && answer !== 'edit') continue;
      const input = readJson(await this.#lines.ask('   Input, as JSON: '));
      if (input) return { decision: 'approved' as const, input: input.value };
      await stdout.write('   That is not JSON.\n');
    }
  }

  async #resolve(operationId: string, decision: Parameters<Signalbox['approvals']['resolve']>[1]): Promise<void> {
    try {
      await this.#client.approvals.resolve(operationId, decision);
    } catch (error) {
      // Another approver was faster, or the tool does not take the edited input.
      if (!(error instanceof SignalboxError) || error.status === 0 || error.status >= 500) throw error;
      await this.#terminal.stdout.write(this.#screen.line(`!  ${shown(error.message)}`));
      if (error.status === 400) await this.#decideApproval(operationId);
    }
  }

  async #sendResult(toolCallId: string): Promise<void> {
    const { stdout } = this.#terminal;
    if (this.#postponed.has(toolCallId) || this.#isInterrupted) return;
    this.#lines.forgetTyped();
    const name = shown(this.#toolNames.get(toolCallId) ?? toolCallId);
    for (;;) {
      const answer = await this.#lines.ask(`   Result of ${name}, as JSON (empty: a program sends it): `);
      if (answer === undefined || answer.trim() === '') {
        this.#postponed.add(toolCallId);
        return;
      }
      const output = readJson(answer);
      if (!output) await stdout.write('   That is not JSON.\n');
      else {
        await this.#client.sessions.sendToolResult(this.#session.sessionId, { toolCallId, output: output.value });
        return;
      }
    }
  }

  #interrupt(): void {
    if (!this.#isWorking || this.#isInterrupted) {
      this.#leaving.abort();
      return;
    }
    this.#isInterrupted = true;
    void this.#terminal.stderr.write('\nStopping the turn. Press Ctrl-C again to leave.\n');
    this.#client.sessions.interrupt(this.#session.sessionId).catch((error: Error) => {
      if (!this.#leaving.signal.aborted) void this.#terminal.stderr.write(`${shown(error.message)}\n`);
    });
  }
}

/** What a conversation needs: not the request that is asked for anyway, and not the statuses in between. */
function isShown(chunk: Chunk): boolean {
  if (chunk.type === 'approval.requested') return false;
  if (chunk.type === 'turn.completed') return chunk.stopReason !== 'endTurn';
  return chunk.type !== 'session.status';
}

async function* chunksOf(stream: AsyncIterable<{ chunks: Chunk[] }>): AsyncGenerator<Chunk> {
  for await (const { chunks } of stream) yield* chunks;
}

function readJson(text: string | undefined): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text ?? '') };
  } catch {
    return undefined;
  }
}
