import { fileURLToPath } from 'node:url';

/** Where the built console stands: as `npm test` builds it, unless one's own build is to be tested. */
export const consoleDir = process.env.SIGNALBOX_CONSOLE_DIR ?? fileURLToPath(new URL('../../dist', import.meta.url));
