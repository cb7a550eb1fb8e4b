// Tabs, filters, ranges and views are in the URL. A change of them is an entry of the browser's history, so that Back undoes it.
import { useNavigate } from '@tanstack/react-router';
import { useCallback, useRef } from 'react';

type ChangeSearch<S> = (change: (before: S) => S, more?: { isTyping?: boolean }) => void;

/** Changes the parameters of the page. What is typed and what one click changes in several steps is one entry. */
export function useChangeSearch<S extends object>(): ChangeSearch<S> {
  const navigate = useNavigate();
  const isSameClick = useRef(false);
  return useCallback(
    (change, { isTyping = false } = {}) => {
      void navigate({
        to: '.',
        search: (before) => change(before as S),
        replace: isTyping || isSameClick.current,
        resetScroll: false,
      });
      isSameClick.current = true;
      queueMicrotask(() => {
        isSameClick.current = false;
      });
    },
    [navigate],
  );
}
