// The date of the built-in prices, beside costs: prices can have changed since.
const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });

/** Nothing while `date` is not known, or if the operator has turned the built-in prices off. */
export function PricesDate({ date }: { date: string | null | undefined }) {
  return date ? <span className="quiet small">Built-in prices are of {day.format(new Date(date))}.</span> : null;
}
