/** Lists, page by page (source section 2.4). */
import type { PageInfo } from './types.generated.ts';

/** Reads the page after a cursor; `undefined`: the first. */
export type ReadPage<T> = (cursor: string | undefined) => Promise<{ data: T[]; page: PageInfo }>;

/** One page of a list. Iterating over it goes on through all pages after it. */
export class Page<T> implements AsyncIterable<T> {
  /** The items of this page. */
  readonly data: readonly T[];
  /** Whether there is more after this page now. */
  readonly hasMore: boolean;
  /** Where to go on, to keep as `cursor` for later, also when `hasMore` is false; `''` where nothing was ever listed. */
  readonly nextCursor: string;
  readonly #read: ReadPage<T>;

  constructor({ data, page }: { data: T[]; page: PageInfo }, read: ReadPage<T>) {
    this.data = data;
    this.hasMore = page.hasMore;
    this.nextCursor = page.nextCursor;
    this.#read = read;
  }

  /** The page after this one; without items, or with what came meanwhile, when `hasMore` is false. */
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
 * What a list method answers with: await it for one page, or iterate over it for every item of all pages.
 *
 *     const page = await client.keys.list({ limit: 50 });
 *     for await (const key of client.keys.list()) …
 *
 * The request is made when it is first awaited or iterated over; awaited again, it gives the same page.
 */
export class PageRequest<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  readonly #read: ReadPage<T>;
  readonly #cursor: string | undefined;
  #page: Promise<Page<T>> | undefined;

  constructor(read: ReadPage<T>, cursor: string | undefined) {
    this.#read = read;
    this.#cursor = cursor;
  }

  // biome-ignore lint/suspicious/noThenProperty: that one may await it is what this class is for
  then<A = Page<T>, B = never>(
    fulfilled?: ((page: Page<T>) => A | PromiseLike<A>) | null,
    rejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#page ??= this.#read(this.#cursor).then((answer) => new Page(answer, this.#read));
    return this.#page.then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    yield* await this;
  }
}
