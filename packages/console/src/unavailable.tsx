// What the console shows and does while it can't load its own files: without a network, or after an upgrade of the service, whose
// build has other files.
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { ErrorNotice } from './ui/notice.tsx';
import { StandalonePage } from './ui/standalone-page.tsx';

const reloadedKey = 'signalbox.reloaded';

/** Loads the new build if a file of this one is gone. If the file is gone after that as well, it was not the build. */
export function reloadIfUpgraded(): void {
  addEventListener('vite:preloadError', ({ payload }) => {
    // Its message names the file, and each build has names of its own.
    if (!navigator.onLine || sessionStorage.getItem(reloadedKey) === payload.message) return;
    sessionStorage.setItem(reloadedKey, payload.message);
    location.reload();
  });
}

function subscribe(listener: () => void): () => void {
  addEventListener('online', listener);
  addEventListener('offline', listener);
  return () => {
    removeEventListener('online', listener);
    removeEventListener('offline', listener);
  };
}

export function useIsOnline(): boolean {
  return useSyncExternalStore(subscribe, () => navigator.onLine);
}

/** In place of a page that failed. Without a network, the page is loaded as soon as there is one. */
export function FailedPage({ error }: { error: unknown }) {
  const isOnline = useIsOnline();
  const wasOffline = useRef(false);
  useEffect(() => {
    if (isOnline && wasOffline.current) location.reload();
    wasOffline.current = !isOnline;
  }, [isOnline]);
  if (!isOnline) {
    return (
      <StandalonePage title="You are offline">
        <p>This page opens when the connection is back.</p>
      </StandalonePage>
    );
  }
  return (
    <StandalonePage title="This page could not be loaded">
      <ErrorNotice error={error} retry={() => location.reload()} />
    </StandalonePage>
  );
}
