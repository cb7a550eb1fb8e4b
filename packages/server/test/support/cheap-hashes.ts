// The hash of a password takes 50 ms of processor time, on purpose. Tests hash hundreds, so in their process the same function runs
// with the lowest cost; hashing.test.ts holds the cost in production.
import crypto, { type ScryptOptions, type scrypt } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { atFileEnd } from './at-file-end.ts';

/** The costs that callers of `scrypt` asked for, in this test file. */
export const askedCosts: ScryptOptions[] = [];
let held: Promise<void> | undefined;
let isCheap = true;

/** For files whose database has hashes that production made: they have the cost of production until the file ends. */
export function useProductionHashes(): void {
  isCheap = false;
}

/** No hash ends before the returned function is called, or the test file ends. */
export function holdHashes(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  held = promise;
  release = () => {
    held = undefined;
    resolve();
  };
  return release;
}
let release = () => {};

const { scrypt: costly } = crypto;
const cheap = (...[password, salt, length, options, end]: Parameters<typeof scrypt>) => {
  askedCosts.push(options);
  void Promise.resolve(held).then(() => costly(password, salt, length, isCheap ? { ...options, N: 2 } : options, end));
};

/** Once in each process; the setup of each test file calls it. */
export function makeHashesCheap(): void {
  const here = globalThis as { signalboxHashesAreCheap?: boolean };
  if (here.signalboxHashesAreCheap) return;
  here.signalboxHashesAreCheap = true;
  crypto.scrypt = cheap as typeof scrypt;
  syncBuiltinESMExports();
  atFileEnd(() => {
    release();
    askedCosts.length = 0;
    isCheap = true;
  });
}
