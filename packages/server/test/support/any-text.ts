import fc, { type Arbitrary, type StringConstraints } from 'fast-check';

// Not `unit: 'binary'`, whose first use costs fast-check 1.3 s of CPU time in every process.
const character = fc
  .oneof(fc.nat({ max: 0x7f }), fc.nat({ max: 0xffff }), fc.nat({ max: 0x10_ff_ff }))
  .map((codePoint) => String.fromCodePoint(codePoint));

/** Text of any code points, including halves of surrogate pairs. */
export function anyText(constraints: Omit<StringConstraints, 'unit'> = {}): Arbitrary<string> {
  return fc.string({ ...constraints, unit: character });
}
