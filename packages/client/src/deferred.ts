/** A promise with its resolvers. Node 20 has no `Promise.withResolvers`. */
export interface Deferred<T> {
  promise: Promise<T>;
  resolve(value: T | PromiseLike<T>): void;
  reject(reason: unknown): void;
}

export function deferred<T = void>(): Deferred<T> {
  let resolve!: Deferred<T>['resolve'];
  let reject!: Deferred<T>['reject'];
  const promise = new Promise<T>((...resolvers) => {
    [resolve, reject] = resolvers;
  });
  return { promise, resolve, reject };
}
