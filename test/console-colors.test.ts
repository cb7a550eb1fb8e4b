// The contrast of the colors that pages combine, by WCAG 2: 4.5 : 1 for text, 3 : 1 for what else one has to see.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const css = readFileSync(new URL('../packages/console/src/styles/tokens.css', import.meta.url), 'utf8');

type Color = [lightness: number, chroma: number, hue: number];

/** The color of a token in the light and in the dark scheme. */
function schemesOf(name: string): [light: Color, dark: Color] {
  const [, value = ''] = new RegExp(`--${name}: ([^;]+);`).exec(css) ?? [];
  const colors = [...value.matchAll(/oklch\(([\d.]+)% ([\d.]+) ([\d.]+)\)/g)].map(
    ([, l, c, h]): Color => [Number(l) / 100, Number(c), Number(h)],
  );
  expect(colors.length, name).toBeGreaterThan(0);
  return [colors[0]!, colors[1] ?? colors[0]!];
}

/** The relative luminance of an OKLCH color, as the browser shows it on an sRGB screen. */
function luminance([lightness, chroma, hue]: Color): number {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const red = 4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s;
  const green = -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s;
  const blue = -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s;
  const [r = 0, g = 0, u = 0] = [red, green, blue].map((one) => Math.min(1, Math.max(0, one)));
  return 0.2126 * r + 0.7152 * g + 0.0722 * u;
}

function contrast(one: Color, other: Color): number {
  const [high = 0, low = 0] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

const surfaces = ['sunken', 'background', 'surface', 'raised', 'hover'];
const states = ['running', 'waiting', 'ok', 'failed'];

function expectContrast(least: number, pairs: readonly (readonly [front: string, back: string])[]): void {
  for (const [front, back] of pairs) {
    for (const scheme of [0, 1] as const) {
      const ratio = contrast(schemesOf(front)[scheme], schemesOf(back)[scheme]);
      expect(ratio, `${front} on ${back}, ${scheme === 0 ? 'light' : 'dark'}`).toBeGreaterThanOrEqual(least);
    }
  }
}

test('text has a contrast of 4.5 : 1 on everything that is behind it, in both schemes', () => {
  const texts = ['text', 'muted', 'accent', ...states.map((state) => `${state}-text`)];
  expectContrast(4.5, [
    ...texts.flatMap((front) => surfaces.map((back) => [front, back] as const)),
    ...states.flatMap((state) => [
      [`${state}-text`, `${state}-background`] as const,
      ['text', `${state}-background`] as const,
      ['muted', `${state}-background`] as const,
    ]),
    ['accent', 'accent-background'],
    ['text', 'accent-background'],
    ['muted', 'accent-background'],
    ['on-accent', 'accent-fill'],
    ['on-accent', 'danger-fill'],
    ['background', 'text'],
  ]);
});

test('the borders of fields and the series of charts have a contrast of 3 : 1, in both schemes', () => {
  const marks = ['border-strong', ...[1, 2, 3, 4, 5, 6].map((number) => `chart-${number}`)];
  expectContrast(
    3,
    marks.flatMap((front) => ['background', 'surface', 'raised'].map((back) => [front, back] as const)),
  );
});
