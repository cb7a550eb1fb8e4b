// Whether the service answers. Every request of the console reports it. While the service does not answer, a small request looks
// for it, because a request of a page may not come for a long time.
import { useSyncExternalStore } from 'react';

// One failure can be a connection that was closed when a request began, and the client retries.
const FAILURES = 2;
const LOOK_MS = 3000;
const TIMEOUT_MS = 10_000;

const listeners = new Set<() => void>();
let failures = 0;
let isLooking = false;

const isDown = () => failures >= FAILURES;

/** `fetch`, which reports whether the service answered. */
export const observedFetch: typeof fetch = async (input, init) => {
  let response: Response;
  try {
    response = await fetch(input, init);
  } catch (error) {
    // What the page no longer needs says nothing about the service.
    if (!init?.signal?.aborted) noteFailure();
    throw error;
  }
  if (isOfProxy(response)) noteFailure();
  else note(0);
  return response;
};

/** Of a request that got no answer in time, which ends like one that the page no longer needs. */
export function noteFailure(): void {
  note(failures + 1);
}

/** Whether the service answers now. */
export async function isServiceUp(): Promise<boolean> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const isUp = await fetch('/console/', { method: 'HEAD', cache: 'no-store', signal }).then(
    ({ status }) => status < 500,
    () => false,
  );
  note(isUp ? 0 : FAILURES);
  return isUp;
}

/** False while the service does not answer. */
export function useIsReachable(): boolean {
  return useSyncExternalStore(subscribe, () => !isDown());
}

/** An error of the proxy before the service. Those of the service are problem details. */
function isOfProxy({ status, headers }: Response): boolean {
  const isGateway = status === 502 || status === 503 || status === 504;
  return isGateway && !headers.get('content-type')?.startsWith('application/problem+json');
}

function note(next: number): void {
  const was = isDown();
  failures = next;
  if (isDown() !== was) for (const listener of listeners) listener();
  if (isDown()) void look();
}

async function look(): Promise<void> {
  if (isLooking) return;
  isLooking = true;
  while (isDown()) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    if (isDown()) await isServiceUp();
  }
  isLooking = false;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
