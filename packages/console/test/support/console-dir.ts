import { fileURLToPath } from 'node:url';

/** The built console: the one of `npm test`, unless the variable names another build. */
export const consoleDir = process.env.SIGNALBOX_CONSOLE_DIR ?? fileURLToPath(new URL('../../dist', import.meta.url));
