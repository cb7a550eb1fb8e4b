// Whether the service answers. After requests without an answer, a small one looks for it, and only that one says that the service is
// down: what failed may be a single slow page, or connections that were closed while the service restarted.
import { useSyncExternalStore } from 'react';

// The client retries.
const FAILURES = 2;
const LOOK_MS = 3000;
const TIMEOUT_MS = 10_000;

const listeners = new Set<() => void>();
let failures = 0;
let isDown = false;
let isLooking = false;

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
  else setDown(false);
  return response;
};

/** Notes a request that got no response in time, which ends like one that the page no longer needs. */
export function noteFailure(): void {
  failures += 1;
  if (failures >= FAILURES) void look();
}

/** Whether the service answers now. */
export async function isServiceUp(): Promise<boolean> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const isUp = await fetch('/console/', { method: 'HEAD', cache: 'no-store', signal }).then(
    ({ status }) => status < 500,
    () => false,
  );
  setDown(!isUp);
  if (!isUp) void look();
  return isUp;
}

/** False while the service does not answer. */
export function useIsReachable(): boolean {
  return useSyncExternalStore(subscribe, () => !isDown);
}

/** An error of the proxy before the service. Those of the service are problem details. */
function isOfProxy({ status, headers }: Response): boolean {
  const isGateway = status === 502 || status === 503 || status === 504;
  return isGateway && !headers.get('content-type')?.startsWith('application/problem+json');
}

function setDown(next: boolean): void {
  failures = 0;
  if (isDown === next) return;
  isDown = next;
  for (const listener of listeners) listener();
}

async function look(): Promise<void> {
  if (isLooking) return;
  isLooking = true;
  while (!(await isServiceUp())) await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  isLooking = false;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
