// What loads for long is said once on a page, however many parts wait, with a way to ask again: a request may never be answered.
import { type Query, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useState } from 'react';
import { Button } from './button.tsx';
import { Notice } from './notice.tsx';

const SLOW_MS = 8000;

const NoteLoading = createContext<(by: 1 | -1) => void>(() => {});

/** For a skeleton: says that something is loading as long as the component is there. */
export function useNoteLoading(): void {
  const note = useContext(NoteLoading);
  useEffect(() => {
    note(1);
    return () => note(-1);
  }, [note]);
}

/** Around skeletons for what takes its time, such as a response of a model. */
export function NeverSlow({ children }: { children: ReactNode }) {
  return <NoteLoading value={ignore}>{children}</NoteLoading>;
}

const ignore = () => {};

/** The content of a page, with a notice above it if something in it loads for long. */
export function WithSlowNotice({ children }: { children: ReactNode }) {
  const [loading, setLoading] = useState(0);
  const note = useCallback((by: 1 | -1) => setLoading((before) => before + by), []);
  return (
    <>
      {loading > 0 && <SlowNotice />}
      <NoteLoading value={note}>{children}</NoteLoading>
    </>
  );
}

function SlowNotice() {
  const queries = useQueryClient();
  const [attempts, setAttempts] = useState(0);
  const [isSlow, setSlow] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt has its time
  useEffect(() => {
    setSlow(false);
    const timer = setTimeout(() => setSlow(true), SLOW_MS);
    return () => clearTimeout(timer);
  }, [attempts]);
  async function retry() {
    setAttempts(attempts + 1);
    const filters = { type: 'active' as const, predicate: isWaiting };
    const waiting = queries.getQueryCache().findAll(filters);
    // Otherwise the query continues to wait for the request that it has sent.
    await queries.cancelQueries(filters);
    await queries.refetchQueries({ predicate: (query) => waiting.includes(query) });
  }
  if (!isSlow) return null;
  return (
    <Notice kind="warn" live title="This is taking longer than usual.">
      <div>
        <Button small onClick={() => void retry()}>
          Try again
        </Button>
      </div>
    </Notice>
  );
}

function isWaiting({ state }: Query): boolean {
  return state.data === undefined && state.fetchStatus === 'fetching';
}
