// The message that is being written. Only the message box renders again when it changes: the conversation may be long.
import { useState, useSyncExternalStore } from 'react';
import type { Attachment } from './attachments.tsx';

export interface UnsentMessage {
  text: string;
  onBusy: 'queue' | 'steer';
  attachments: readonly Attachment[];
}

export const emptyMessage: UnsentMessage = { text: '', onBusy: 'queue', attachments: [] };

export class UnsentStore {
  readonly #key: string | undefined;
  readonly #listeners = new Set<() => void>();
  #message: UnsentMessage;

  /** The text is kept for this tab of the browser under the key until it is sent. Attachments are not: they expire. */
  constructor(key?: string) {
    this.#key = key;
    this.#message = { ...emptyMessage, text: (key && sessionStorage.getItem(key)) ?? '' };
  }

  readonly get = (): UnsentMessage => this.#message;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly change = (change: (before: UnsentMessage) => UnsentMessage): void => {
    this.#message = change(this.#message);
    const { text } = this.#message;
    if (this.#key && text === '') sessionStorage.removeItem(this.#key);
    else if (this.#key) sessionStorage.setItem(this.#key, text);
    for (const listener of this.#listeners) listener();
  };
}

/** Outlives the message box, for as long as the component is mounted. With a session, a reload keeps the text. */
export function useUnsentStore(sessionId?: string): UnsentStore {
  const [store] = useState(() => new UnsentStore(sessionId && `signalbox.draft.${sessionId}`));
  return store;
}

export const useUnsentMessage = (store: UnsentStore): UnsentMessage => useSyncExternalStore(store.subscribe, store.get);
