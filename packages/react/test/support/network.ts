// The network between a page and the service, which a test can cut.

export interface Network {
  readonly fetch: typeof fetch;
  /** Method and path of each request, in order, without `/api/v1`. */
  readonly requests: string[];
  /** Streams that the page has not closed. */
  readonly openStreams: number;
  /** From now on nothing gets through, and open streams break. */
  cut(): void;
  restore(): void;
  /** The service gets the next request whose method and path match, but its response is lost. */
  loseResponse(of: RegExp): void;
  /** Each stream breaks after this many characters, in the middle of whatever it sends. */
  cutStreamsAfter(characters: () => number): void;
}

const lost = () => new TypeError('fetch failed', { cause: new Error('the test cut the network') });

export function createNetwork(): Network {
  const requests: string[] = [];
  let openStreams = 0;
  let isCut = false;
  let losing: RegExp | undefined;
  let limit: (() => number) | undefined;
  const open = new Set<AbortController>();

  return {
    requests,
    get openStreams() {
      return openStreams;
    },
    cut() {
      isCut = true;
      for (const one of open) one.abort(lost());
    },
    restore() {
      isCut = false;
    },
    loseResponse(of) {
      losing = of;
    },
    cutStreamsAfter(characters) {
      limit = characters;
    },
    async fetch(input, init = {}) {
      const { pathname, search } = new URL(String(input));
      const request = `${init.method} ${pathname.replace('/api/v1', '')}${search}`;
      requests.push(request);
      if (isCut) throw lost();
      const controller = new AbortController();
      open.add(controller);
      const signal = AbortSignal.any([controller.signal, ...(init.signal ? [init.signal] : [])]);
      const response = await fetch(input, { ...init, signal });
      if (losing?.test(request)) {
        losing = undefined;
        await response.arrayBuffer();
        throw lost();
      }
      if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return response;
      openStreams += 1;
      signal.addEventListener('abort', () => {
        openStreams -= 1;
      });
      if (!limit) return response;
      let left = limit();
      const cutting = new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, output) {
          const part = bytes.slice(0, left);
          left -= part.length;
          output.enqueue(part);
          if (left === 0) output.error(lost());
        },
      });
      const { status, headers } = response;
      return new Response(response.body!.pipeThrough(cutting), { status, headers });
    },
  };
}
