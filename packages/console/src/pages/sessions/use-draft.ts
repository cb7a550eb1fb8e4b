// The message that is being written. Only the message box renders again when it changes: the conversation may be long.
import { useState, useSyncExternalStore } from 'react';
import { emptyDraft, type MessageDraft } from './composer.tsx';

export class Draft {
  readonly #key: string | undefined;
  readonly #listeners = new Set<() => void>();
  #message: MessageDraft;

  /** Kept for this tab of the browser under the key until it is sent. Attachments are not: they expire. */
  constructor(key?: string) {
    this.#key = key;
    this.#message = { ...emptyDraft, text: (key && sessionStorage.getItem(key)) ?? '' };
  }

  readonly get = (): MessageDraft => this.#message;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly change = (change: (before: MessageDraft) => MessageDraft): void => {
    this.#message = change(this.#message);
    const { text } = this.#message;
    if (this.#key && text === '') sessionStorage.removeItem(this.#key);
    else if (this.#key) sessionStorage.setItem(this.#key, text);
    for (const listener of this.#listeners) listener();
  };
}

/** A draft that outlives the message box, for as long as the component is mounted. */
export function useDraft(sessionId?: string): Draft {
  const [draft] = useState(() => new Draft(sessionId && `signalbox.draft.${sessionId}`));
  return draft;
}

export const useMessage = (draft: Draft): MessageDraft => useSyncExternalStore(draft.subscribe, draft.get);
