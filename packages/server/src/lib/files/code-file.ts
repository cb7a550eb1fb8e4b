import { createRequire } from 'node:module';
import { extname } from 'node:path';
import { pathToFileURL } from 'node:url';

// By the package's own name: in a published package most code is in bundles, which are not where their sources were.
const main = pathToFileURL(createRequire(import.meta.url).resolve('@signalbox/server'));

/** The URL of a file or folder that is read at run time, such as `db/migrations/`, by its path in `src`. */
export function dataFile(path: string): URL {
  return new URL(path, main);
}

/** The URL of a file of code that something else loads, such as a thread, by its path in `src` without the extension. */
export function codeFile(path: string): URL {
  return new URL(path + extname(main.pathname), main);
}
