import { expect, test } from 'vitest';
import { isWithin, networkOf, parseNetwork } from './network.ts';

test.each([
  ['10.0.0.0/8', '10.1.2.3', true],
  ['10.0.0.0/8', '::ffff:10.1.2.3', true],
  ['10.0.0.0/8', '11.0.0.1', false],
  ['10.0.0.0/8', '::a01:203', false],
  ['192.168.1.5', '192.168.1.5', true],
  ['192.168.1.5', '192.168.1.6', false],
  ['2001:db8::/32', '2001:db8:1::1', true],
  ['2001:db8::/32', '2001:db9::1', false],
  ['0.0.0.0/0', '::1', false],
  ['::/0', '10.0.0.1', false],
  ['0.0.0.0/0', 'unix', false],
])('%s has %s: %s', (network, address, within) => {
  expect(isWithin([parseNetwork(network)], address)).toBe(within);
});

test.each([
  '',
  '10',
  '10.0.0/8',
  '10.0.0.1/8',
  '10.0.0.0/33',
  '10.0.0.0/',
  '010.0.0.1',
  'fe80::1%eth0',
  '10.0.0.0/8/8',
])('%j is no network', (text) => {
  expect(() => parseNetwork(text)).toThrow();
});

test.each([
  ['10.1.2.3', '10.1.2.3'],
  ['::ffff:10.1.2.3', '10.1.2.3'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['', ''],
])('%j is counted as %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
