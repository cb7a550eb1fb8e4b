/** Lists, page by page. */
import type { PageInfo } from './types.generated.ts';

/** Reads the page after a cursor; `undefined`: the first page. */
export type ReadPage<T> = (cursor: string | undefined) => Promise<{ data: T[]; page: PageInfo }>;

/** One page of a list. Iterating over it continues through all following pages. */
export class Page<T> implements AsyncIterable<T> {
  /** The items of this page. */
  readonly data: readonly T[];
  /** Whether there are more items after this page now. */
  readonly hasMore: boolean;
  /** Where to continue, also later and if `hasMore` is false; `''` only if the list has always been empty. */
  readonly nextCursor: string;
  readonly #read: ReadPage<T>;

  constructor({ data, page }: { data: T[]; page: PageInfo }, read: ReadPage<T>) {
    this.data = data;
    this.hasMore = page.hasMore;
    this.nextCursor = page.nextCursor;
    this.#read = read;
  }

  /** The next page; if `hasMore` is false, it has the items added since, if any. */
  nextPage(): PageRequest<T> {
    return new PageRequest(this.#read, this.nextCursor || undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    let page: Page<T> = this;
    yield* page.data;
    while (page.hasMore) {
      page = await page.nextPage();
      yield* page.data;
    }
  }
}

/**
 * The result of a list method: await it for one page, or iterate over it for every item of all pages.
 *
 *     const page = await client.keys.list({ limit: 50 });
 *     for await (const key of client.keys.list()) …
 *
 * The request is sent when it is first awaited or iterated over; awaiting it again returns the same page.
 */
export class PageRequest<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  readonly #read: ReadPage<T>;
  readonly #cursor: string | undefined;
  #page: Promise<Page<T>> | undefined;

  constructor(read: ReadPage<T>, cursor: string | undefined) {
    this.#read = read;
    this.#cursor = cursor;
  }

  // biome-ignore lint/suspicious/noThenProperty: this class exists to be awaited
  then<A = Page<T>, B = never>(
    fulfilled?: ((page: Page<T>) => A | PromiseLike<A>) | null,
    rejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#page ??= this.#read(this.#cursor).then((page) => new Page(page, this.#read));
    return this.#page.then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    yield* await this;
  }
}
