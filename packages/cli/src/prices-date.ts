// The date of the built-in prices, beside costs: prices can have changed since.
import type { Terminal } from './terminal.ts';

/** Nothing if the built-in prices are off, or the service is older than they are. */
export async function writePricesDate({ stderr }: Pick<Terminal, 'stderr'>, date: string | null | undefined) {
  if (date) await stderr.write(`Built-in prices are of ${date}.\n`);
}
