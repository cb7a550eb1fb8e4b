// Amounts of dollars, and the date of the built-in prices, which may have changed since. A page on which an amount is shown says the
// date once, at its end, and so does a dialog or a drawer. There is no other way to show an amount.
import { createContext, type ReactNode, useContext, useLayoutEffect, useState } from 'react';
import { useApiQuery } from '../data/organization.tsx';
import * as texts from '../lib/dollars.ts';

/** Says that an amount is shown; the result takes that back. */
type Show = () => () => void;

const ShowContext = createContext<Show | undefined>(undefined);

/** Amounts as text. Throws outside of `DatedPrices`. `isShown`: whether there is an amount. */
export function useDollars({ isShown = true } = {}): typeof texts {
  const show = useContext(ShowContext);
  if (!show) throw new Error('An amount is shown without the date of the prices.');
  useLayoutEffect(() => (isShown ? show() : undefined), [show, isShown]);
  return texts;
}

/** An amount. `as`: which of the texts; default: `exact`. */
export function Dollars({ usd, as = 'exact' }: { usd: number; as?: 'money' | 'exact' | 'short' }) {
  return useDollars()[as](usd);
}

export function DatedPrices({ children }: { children: ReactNode }) {
  const [amounts, setAmounts] = useState(0);
  const [show] = useState(
    (): Show => () => {
      setAmounts((count) => count + 1);
      return () => setAmounts((count) => count - 1);
    },
  );
  return (
    <ShowContext value={show}>
      {children}
      {amounts > 0 && <PricesDate />}
    </ShowContext>
  );
}

const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });

/** Nothing while it is not known, or if the operator has turned the built-in prices off. */
function PricesDate() {
  const { data } = useApiQuery(['organization'], (client) => client.organization.get());
  return data?.pricesDate ? (
    <p className="quiet small">Built-in prices are of {day.format(new Date(data.pricesDate))}.</p>
  ) : null;
}
