const cents = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' });
const parts = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', minimumFractionDigits: 4 });

/** `$1.20`, `$0.0042`. */
export function moneyText(usd: number): string {
  if (usd > 0 && usd < 0.0001) return '<$0.0001';
  return usd >= 1 || usd === 0 ? cents.format(usd) : parts.format(usd);
}
