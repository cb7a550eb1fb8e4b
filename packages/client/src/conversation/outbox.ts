/**
 * Messages that the user has sent from this page, in order, until they are seen in the transcript.
 *
 * They are sent one after another. While the network is down a message is repeated, with one idempotency key, so the session gets it
 * once. If the service refuses it, it is `failed` and the next one is sent.
 */
import type { Sleep } from '../time.ts';
import type { Message } from '../types.generated.ts';
import { Backoff } from './backoff.ts';
import { isTemporary } from './failures.ts';
import type { MessageContent, SendOptions, UserMessage } from './types.ts';

export interface Outgoing {
  message: UserMessage;
  readonly content: MessageContent;
  readonly options: SendOptions;
  /** The key of all attempts until the service has refused the message. */
  idempotencyKey: string;
  /** Called when it is stored or has failed. */
  readonly settle: ((isSent: boolean) => void)[];
}

export class Outbox {
  readonly #send: (outgoing: Outgoing) => Promise<string | null>;
  readonly #changed: (failure?: unknown) => void;
  readonly #backoff: Backoff;
  readonly #ids = new Map<string, string>();
  #isSending = false;
  /** The network or the service is down, so the next message waits. */
  isWaiting = false;
  entries: readonly Outgoing[] = [];

  /** `send` resolves with the id of the stored message, or null if it is not known yet. `changed` is called after each change, with the error of a message that failed. */
  constructor(
    send: (outgoing: Outgoing) => Promise<string | null>,
    changed: (failure?: unknown) => void,
    sleep: Sleep,
  ) {
    this.#send = send;
    this.#changed = changed;
    this.#backoff = new Backoff(sleep);
  }

  /** Resolves when the message is stored (true) or has failed (false). */
  add(content: MessageContent, options: SendOptions): Promise<boolean> {
    const idempotencyKey = newKey();
    const id = `local_${idempotencyKey}`;
    const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
    const message: UserMessage = {
      role: 'user',
      id,
      messageId: null,
      turn: null,
      parts: parts.map((part, index) =>
        part.type === 'text'
          ? { type: 'text', id: `text_${index}`, text: part.text, isStreaming: false }
          : { type: 'file', id: `file_${index}`, file: { fileId: part.fileId } },
      ),
      status: 'sending',
      createdAt: null,
    };
    return new Promise((resolve) => {
      this.entries = [...this.entries, { message, content, options, idempotencyKey, settle: [resolve] }];
      this.#changed();
      void this.#sendAll();
    });
  }

  /** Sends the messages that failed again, and those that wait for the network now. Resolves with whether all were sent. */
  async retry(): Promise<boolean> {
    const again: Promise<boolean>[] = [];
    for (const entry of this.entries) {
      if (entry.message.status === 'sent') continue;
      again.push(new Promise((resolve) => entry.settle.push(resolve)));
      // The service repeats a refusal to the same key.
      if (entry.message.status === 'failed') entry.idempotencyKey = newKey();
      this.#set(entry, { status: 'sending' });
    }
    this.wake();
    void this.#sendAll();
    return (await Promise.all(again)).every(Boolean);
  }

  /** The network may be back. */
  wake(): void {
    this.#backoff.wake();
  }

  /** The `id` with which a message is shown: one that this page has sent keeps its own. */
  idOf(messageId: string): string {
    return this.#ids.get(messageId) ?? messageId;
  }

  /**
   * Messages that were just read from the transcript: from now on they are shown from there. One whose response has not arrived, or
   * was lost, is recognized by its content.
   */
  found(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.role !== 'user') continue;
      const inFlight = this.entries.find(({ message: { status } }) => status === 'sending');
      const entry = this.entries.find(
        (one) =>
          one.message.messageId === message.messageId ||
          (one.message.messageId === null &&
            (one === inFlight || one.message.status === 'sent') &&
            !this.#ids.has(message.messageId) &&
            textOf(one.content) === textOf(message.content)),
      );
      if (!entry) continue;
      this.#ids.set(message.messageId, entry.message.id);
      entry.message = { ...entry.message, messageId: message.messageId };
    }
    const known = new Set(messages.map(({ messageId }) => messageId));
    const isDone = ({ message: { messageId, status } }: Outgoing) =>
      status === 'sent' && messageId !== null && known.has(messageId);
    this.entries = this.entries.filter((entry) => !isDone(entry));
  }

  async #sendAll(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    for (let next: Outgoing | undefined; ; ) {
      next = this.entries.find(({ message }) => message.status === 'sending');
      if (!next) break;
      try {
        const messageId = await this.#send(next);
        this.#backoff.succeeded();
        this.isWaiting = false;
        if (messageId !== null) this.#ids.set(messageId, next.message.id);
        this.#set(next, { status: 'sent', ...(messageId !== null && { messageId }) });
        for (const settle of next.settle.splice(0)) settle(true);
      } catch (error) {
        this.isWaiting = isTemporary(error);
        if (this.isWaiting) {
          this.#changed();
          await this.#backoff.pause();
          continue;
        }
        this.#set(next, { status: 'failed' }, error);
        for (const settle of next.settle.splice(0)) settle(false);
      }
    }
    this.#isSending = false;
  }

  #set(entry: Outgoing, changes: Partial<UserMessage>, failure?: unknown): void {
    entry.message = { ...entry.message, ...changes };
    this.entries = [...this.entries];
    this.#changed(failure);
  }
}

/** To compare contents: the text, and the files by their ids. */
function textOf(content: MessageContent | Message['content']): string {
  if (typeof content === 'string') return content.toWellFormed();
  return content
    .map((part) => (part.type === 'text' ? part.text : part.type === 'file' ? part.fileId : ''))
    .join('\n')
    .toWellFormed();
}

/** Not `randomUUID`: browsers have it only in secure contexts. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
