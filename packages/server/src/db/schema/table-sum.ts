// What a table contains, in two values: how many rows, and a checksum that does not depend on their order. It is computed from the
// text of `copy`, which is the same in every version of PostgreSQL, so a copy of a table can be compared with the table.
import { hash } from 'node:crypto';

/** `checksum`: the sum of the SHA-256 of all rows, as eight numbers of 32 bits. */
export interface TableSum {
  rows: number;
  checksum: string;
}

const LINE_FEED = 10;
const LANES = 8;

export class TableSummer {
  #rows = 0;
  readonly #lanes = new Uint32Array(LANES);
  /** The beginning of a row whose end has not arrived yet. */
  #begun: Buffer[] = [];

  /** A row ends with a line feed; within a row it is escaped. */
  add(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      const last = chunk.subarray(from, end);
      this.#addRow(this.#begun.length === 0 ? last : Buffer.concat([...this.#begun, last]));
      this.#begun = [];
      from = end + 1;
    }
    if (from < chunk.length) this.#begun.push(chunk.subarray(from));
  }

  #addRow(row: Buffer): void {
    const digest = hash('sha256', row, 'buffer');
    for (let lane = 0; lane < LANES; lane += 1) this.#lanes[lane]! += digest.readUInt32LE(4 * lane);
    this.#rows += 1;
  }

  get rows(): number {
    return this.#rows;
  }

  /** The sum of the rows so far. */
  get sum(): TableSum {
    const checksum = [...this.#lanes].map((lane) => lane.toString(16).padStart(8, '0')).join('');
    return { rows: this.#rows, checksum };
  }
}

export function isSameSum(one: TableSum, other: TableSum): boolean {
  return one.rows === other.rows && one.checksum === other.checksum;
}
