import { createRequire } from 'node:module';

// By its own name: the file is two folders up in the sources, and one in the published package.
const manifest = createRequire(import.meta.url)('@signalbox/server/package.json') as { version: string };

/** The version of the service, as in its responses and its `User-Agent`. */
export const version: string = manifest.version;
