// Amounts of dollars as text. Only ui/dollars.tsx imports this: what is shown with it has the date of the prices.

/** With cents, or with four digits below a dollar if it is not whole cents: a model call costs fractions of one. */
export function money(usd: number): string {
  const isCents = Math.abs(usd * 100 - Math.round(usd * 100)) < 1e-9;
  const digits = Math.abs(usd) < 1 && !isCents ? 4 : 2;
  return usd.toLocaleString('en', {
    style: 'currency',
    currency: 'USD',
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

const LEAST_SHOWN_USD = 0.0001;

/** `$12.40`, `$0.0123`. */
export function exact(usd: number): string {
  if (usd === 0) return '$0.00';
  if (usd < LEAST_SHOWN_USD) return `<$${LEAST_SHOWN_USD}`;
  const digits = usd >= 1 ? 2 : 4;
  return `$${usd.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

/** In a list: two digits from a dollar up, four below. */
export function short(usd: number): string {
  const digits = usd >= 1 || usd === 0 ? 2 : 4;
  const text = usd.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return usd > 0 && usd < 0.000_05 ? '<$0.0001' : `$${text}`;
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 2 });

/** A round amount of an axis: `$2.5K`. */
export function axis(usd: number): string {
  return `$${compact.format(usd)}`;
}

/** What a million tokens cost. */
export function price({ inputUsd, outputUsd }: { inputUsd: number; outputUsd: number }): string {
  return `$${inputUsd} in · $${outputUsd} out`;
}
