// What the console shows and does while it can't load its own files: without a network, or after an upgrade of the service, whose
// build has other files.
import { SignalboxError } from '@signalbox/client';
import { FileQuestion } from 'lucide-react';
import { type ComponentType, type ReactNode, useEffect, useRef, useSyncExternalStore } from 'react';
import { isServiceUp, useIsReachable } from '../lib/reachability.ts';
import { ButtonLink } from './button.tsx';
import { EmptyState } from './empty-state.tsx';
import { ErrorNotice } from './notice.tsx';
import { Page } from './page.tsx';
import { StandalonePage } from './standalone-page.tsx';

const reloadedKey = 'signalbox.reloaded';

/**
 * Loads the new build if a file of this one is gone. If the file is gone after that as well, it was not the build. While the service
 * does not answer, a reload would leave the browser's error page, so the page says what happened instead.
 */
export function reloadIfUpgraded(): void {
  addEventListener('vite:preloadError', ({ payload: { message } }) => {
    // It names the file, and each build has names of its own.
    if (sessionStorage.getItem(reloadedKey) === message) return;
    void reloadIfUp(() => sessionStorage.setItem(reloadedKey, message));
  });
}

async function reloadIfUp(before = () => {}): Promise<void> {
  if (!(await isServiceUp())) return;
  before();
  location.reload();
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

/** Without a network or the service, the page is loaded as soon as there is one. */
function useReloadWhenBack(isBack: boolean): void {
  const wasAway = useRef(false);
  useEffect(() => {
    if (isBack && wasAway.current) location.reload();
    wasAway.current = !isBack;
  }, [isBack]);
}

/** In place of a page that failed. `Layout` is the frame's, or that of a page without one. */
function Failed({ error, Layout }: { error: unknown; Layout: ComponentType<{ title: string; children: ReactNode }> }) {
  const isOnline = useIsOnline();
  const isReachable = useIsReachable();
  useReloadWhenBack(isOnline && isReachable);
  if (!isOnline) {
    return (
      <Layout title="You are offline">
        <p>The page opens when the connection is back.</p>
      </Layout>
    );
  }
  return (
    <Layout title="The page could not be loaded">
      <ErrorNotice error={isReachable ? error : unreachable} retry={() => reloadIfUp()} />
    </Layout>
  );
}

// What the browser says about a file that could not be loaded is not useful.
const unreachable = new SignalboxError({ status: 0, code: 'connection_error', detail: '' });

export function FailedPage({ error }: { error: unknown }) {
  return <Failed error={error} Layout={StandalonePage} />;
}

/** The same, with the navigation. */
export function FailedPageOfOrganization({ error }: { error: unknown }) {
  return <Failed error={error} Layout={Page} />;
}

export function NotFoundPage() {
  return (
    <StandalonePage title="Page not found">
      <p className="quiet">Check the address. The page may have moved.</p>
      <a className="button primary" href="/console/">
        Open the console
      </a>
    </StandalonePage>
  );
}

export function NotFoundPageOfOrganization() {
  return (
    <Page title="Page not found">
      <EmptyState
        icon={FileQuestion}
        title="No page at this address"
        action={
          <ButtonLink from="/$organizationId" to="." look="primary">
            Open the overview
          </ButtonLink>
        }
      >
        Check the address, or search for what you need with Ctrl K.
      </EmptyState>
    </Page>
  );
}
