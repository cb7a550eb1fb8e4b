// Amounts of dollars, and the date of the built-in prices, which may have changed since. There is no other way to print an amount.
import type { Signalbox } from '@signalbox/client';
import type { Terminal } from './terminal.ts';

export interface Dollars {
  /** With all its digits. */
  exact(usd: number): string;
  /** For a table: two digits from a dollar up, four below. */
  short(usd: number): string;
  /** What a million tokens cost. */
  price(prices: { inputUsd: number; outputUsd: number }): string;
}

const texts: Dollars = {
  exact: (usd) => `$${usd}`,
  short: (usd) => `$${usd < 1 ? usd.toFixed(4) : usd.toFixed(2)}`,
  price: ({ inputUsd, outputUsd }) => `${inputUsd} in, ${outputUsd} out`,
};

type PricesDate = string | null | undefined;

/**
 * Prints something with amounts, and then the date on stderr. `from`: a response with the date, or who can ask for it, which happens if an
 * amount was printed. Nothing if the built-in prices are off, or the service is older than they are.
 */
export async function printWithDollars(
  { stderr }: Pick<Terminal, 'stderr'>,
  from: { pricesDate?: PricesDate } | Pick<Signalbox, 'organization'>,
  print: (dollars: Dollars) => Promise<unknown>,
): Promise<void> {
  let hasAmount = false;
  const seen = <Value>(text: (value: Value) => string) => {
    return (value: Value) => {
      hasAmount = true;
      return text(value);
    };
  };
  await print({ exact: seen(texts.exact), short: seen(texts.short), price: seen(texts.price) });
  if (!hasAmount) return;
  const { pricesDate } = 'organization' in from ? await from.organization.get() : from;
  if (pricesDate) await stderr.write(`Built-in prices are of ${pricesDate}.\n`);
}
