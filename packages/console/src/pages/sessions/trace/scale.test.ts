import { expect, test } from 'vitest';
import { createScale } from './scale.ts';

const hour = 3_600_000;

test('without idle time, the axis is linear', () => {
  const scale = createScale({ from: 1000, until: 2000 }, [{ from: 1000, until: 2000 }]);
  expect([900, 1000, 1250, 2000, 9000].map(scale.at)).toEqual([0, 0, 0.25, 1, 1]);
  expect(scale.breaks).toEqual([]);
  expect(scale.ticks[0]).toEqual({ at: 0, ms: 0 });
});

test('hours between two turns are drawn short and marked, and the seconds of work in full', () => {
  const turns = [
    { from: 0, until: 1000 },
    { from: hour, until: hour + 1000 },
  ];
  const { at, breaks } = createScale({ from: 0, until: hour + 1000 }, turns);
  expect(breaks).toHaveLength(1);
  expect(breaks[0]!.ms).toBe(hour - 1000);
  expect(breaks[0]!.end - breaks[0]!.at).toBeLessThan(0.15);
  expect(at(1000) - at(0)).toBeCloseTo(at(hour + 1000) - at(hour));
  expect(at(hour + 1000)).toBe(1);
});

test('the axis never runs backwards, and however many breaks there are, work has most of it', () => {
  const turns = Array.from({ length: 500 }, (_, index) => ({ from: index * hour, until: index * hour + 2000 }));
  const whole = { from: 0, until: 500 * hour };
  const { at, breaks, ticks } = createScale(whole, turns);
  const places = Array.from({ length: 2000 }, (_, index) => at((index / 2000) * whole.until));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(breaks.reduce((sum, { at, end }) => sum + end - at, 0)).toBeLessThan(0.3);
  expect(ticks.length).toBeLessThan(20);
});

test('an axis without work, or without any length, is still one', () => {
  expect(createScale({ from: 5, until: 5 }, []).at(5)).toBe(0);
  expect(createScale({ from: 0, until: hour }, []).at(hour / 2)).toBe(0.5);
});
