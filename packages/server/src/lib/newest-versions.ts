// What the service runs on, and the versions of it with the newest security fixes when this release was made. Operators install both
// themselves, so `signalbox doctor` and the log of a start name the fixes that are missing.

interface Newest {
  version: string;
  /** A date. */
  released: string;
}

/** The newest version of each line, by its major number. Brought up to date with each release (docs/operations/releasing.md). */
const NEWEST: Readonly<Record<'Node.js' | 'PostgreSQL', Readonly<Record<number, Newest>>>> = {
  'Node.js': {
    22: { version: '22.23.4', released: '2026-10-21' },
    24: { version: '24.22.1', released: '2026-10-21' },
    26: { version: '26.12.1', released: '2026-10-21' },
  },
  PostgreSQL: {
    15: { version: '15.19', released: '2026-08-13' },
    16: { version: '16.15', released: '2026-08-13' },
    17: { version: '17.12', released: '2026-11-12' },
    18: { version: '18.7', released: '2026-11-12' },
  },
};

/** The numbers at the beginning of a version: [15, 18] of `15.18 (Debian 15.18-0)`. */
export function versionNumbers(version: string): number[] {
  const [numbers = ''] = /^[\d.]*/.exec(version) ?? [];
  return numbers.split('.').filter(Boolean).map(Number);
}

/** The newest version of the same line, if the one that runs is older. Undefined for lines, and for previews, that are not known. */
export function newerVersion(product: keyof typeof NEWEST, running: string): Newest | undefined {
  const numbers = versionNumbers(running);
  const newest = NEWEST[product][numbers[0] ?? 0];
  if (!newest) return undefined;
  const wanted = versionNumbers(newest.version);
  if (numbers.length < wanted.length) return undefined;
  const first = wanted.findIndex((number, index) => number !== numbers[index]);
  return first !== -1 && numbers[first]! < wanted[first]! ? newest : undefined;
}

/** What is wrong, for the operator. */
export function lacksFixes(product: keyof typeof NEWEST, running: string, newer: Newest): string {
  return `${product} ${running} lacks the security fixes of ${newer.version} (${newer.released})`;
}
