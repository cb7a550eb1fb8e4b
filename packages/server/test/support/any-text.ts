import fc, { type Arbitrary, type StringConstraints } from 'fast-check';

// Not `unit: 'binary'`: to begin with that, fast-check takes 1.3 s of CPU time in every process.
const character = fc
  .oneof(fc.nat({ max: 0x7f }), fc.nat({ max: 0xffff }), fc.nat({ max: 0x10_ff_ff }))
  .map((codePoint) => String.fromCodePoint(codePoint));

/** A text of any code points, halves of surrogate pairs among them. */
export function anyText(constraints: Omit<StringConstraints, 'unit'> = {}): Arbitrary<string> {
  return fc.string({ ...constraints, unit: character });
}
