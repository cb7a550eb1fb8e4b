import { type Dispatch, type SetStateAction, useEffect, useState } from 'react';
import { emptyDraft, type MessageDraft } from './composer.tsx';

/** The message that is being written, kept for this tab of the browser until it is sent. Attachments are not: they expire. */
export function useDraft(sessionId: string): [MessageDraft, Dispatch<SetStateAction<MessageDraft>>] {
  const key = `signalbox.draft.${sessionId}`;
  const [draft, setDraft] = useState<MessageDraft>(() => ({ ...emptyDraft, text: sessionStorage.getItem(key) ?? '' }));
  useEffect(() => {
    if (draft.text === '') sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, draft.text);
  }, [key, draft.text]);
  return [draft, setDraft];
}
