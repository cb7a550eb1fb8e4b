// The edits of an agent that are not saved. The tab of the browser keeps them through a reload and an expired session, until they are
// saved or discarded.
import { useEffect, useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';

/** `form` is an id. Another user who signs in does not get them. */
export function useKeptEdits<T>(form: string): { key: string; kept: T | undefined } {
  const { userId } = useOrganization().user;
  const key = `signalbox.agent.${userId}.${form}`;
  const [kept] = useState(() => {
    const text = sessionStorage.getItem(key);
    return text === null ? undefined : (JSON.parse(text) as T);
  });
  return { key, kept };
}

/** Undefined: there are none. */
export function useKeep(key: string, edits: unknown): void {
  const text = edits === undefined ? undefined : JSON.stringify(edits);
  useEffect(() => {
    if (text === undefined) return sessionStorage.removeItem(key);
    try {
      sessionStorage.setItem(key, text);
    } catch {
      // More than the browser keeps. The page still has them.
    }
  }, [key, text]);
}

export function forgetEdits(key: string): void {
  sessionStorage.removeItem(key);
}
