// The file of a backup: gzip of lines.
//
//   {"signalboxBackup":1, …}                 the header
//   {"table":"agents","columns":[…]}         for each table: what it is,
//   …                                        its rows, in the text format of `copy`,
//   \.                                       the end of the rows, as psql writes it,
//   {"rows":2,"checksum":"…"}                and the sum of what was read
//   {"end":true,"tables":40,"rows":1234}     without which the file is cut off
//
// Standard tools can read it (`zcat FILE`), and gzip has a checksum of its own, so damage is found even where a row would still parse.
import { pipeline, Readable } from 'node:stream';
import { createGunzip, createGzip } from 'node:zlib';
import { Type } from '@signalbox/contract';
import { fieldErrors } from '@signalbox/contract/check';
import type { AppliedMigration } from '../db/schema/migrate.ts';
import { isSameSum, type TableSum, TableSummer } from '../db/schema/table-sum.ts';
import { type Contents, summed, type Table, type TableRows } from '../db/schema/tables.ts';
import { version as release } from '../lib/version.ts';
import { OperatorError } from './operator.ts';
import type { SealedText } from './passphrase.ts';
import type { Progress } from './progress.ts';

const FORMAT = 1;
// Half the time of the default for 5 % more bytes.
const LEVEL = 4;
const MAX_LINE_BYTES = 1_000_000;
const LINE_FEED = 10;
/** The line after the last row of a table. No row is equal to it, because a backslash in a row is escaped. */
const END_OF_ROWS = Buffer.from('\\.\n');

export interface BackupHeader {
  signalboxBackup: number;
  /** The version of Signalbox that wrote it. */
  release: string;
  createdAt: string;
  migrations: AppliedMigration[];
  /** The master keys of the installation, encrypted under a passphrase. */
  masterKeys?: SealedText;
  /** Files whose bytes are elsewhere: how many, by the name of their store. */
  otherStores?: Record<string, { files: number; bytes: number }>;
}

// A file is not trusted: what is in its header reaches the disk, statements and the operator's terminal.
const Text = Type.String({ maxLength: 2_000 });
const Count = Type.Integer({ minimum: 0 });
const Header = Type.Object({
  release: Type.String({ pattern: '^[0-9A-Za-z.+-]{1,64}$' }),
  createdAt: Type.String({ format: 'date-time' }),
  migrations: Type.Array(
    Type.Object({ version: Count, name: Type.String({ pattern: '^[a-z0-9_]{1,100}$' }), sha256: Text }),
    { minItems: 1, maxItems: 9_999 },
  ),
  masterKeys: Type.Optional(Type.Object({ salt: Text, nonce: Text, tag: Text, text: Text })),
  otherStores: Type.Optional(Type.Record(Type.String(), Type.Object({ files: Count, bytes: Count }))),
});
/** All that is read of a header in another form. */
const OtherHeader = Type.Pick(Header, ['release']);

export type Backup = BackupHeader & Contents;

/** The bytes of the file. `count` is called at the end. */
export function writeBackup(
  contents: Contents,
  header: Omit<BackupHeader, 'signalboxBackup' | 'release' | 'migrations'>,
  progress: Progress,
  count: (total: { tables: number; rows: number }) => void,
): Readable {
  async function* lines(): AsyncGenerator<Buffer> {
    yield line({ signalboxBackup: FORMAT, release, ...header, migrations: contents.migrations });
    let tables = 0;
    let rows = 0;
    for await (const table of contents.tables()) {
      yield line({ table: table.name, columns: table.columns });
      for await (const chunk of table.rows) {
        yield chunk;
        progress({ step: 'saving', table: table.name, rows: table.sum().rows, done: tables });
      }
      yield END_OF_ROWS;
      yield line(table.sum());
      tables += 1;
      rows += table.sum().rows;
    }
    yield line({ end: true, tables, rows });
    count({ tables, rows });
  }
  // An error of one ends the other.
  return pipeline(Readable.from(lines(), { objectMode: false }), createGzip({ level: LEVEL }), () => {});
}

const line = (value: object) => Buffer.from(`${JSON.stringify(value)}\n`);

/** Reads the header; the tables follow when they are read. Throws `OperatorError` if the file is not a whole backup. */
export async function readBackup(file: Readable, name: string): Promise<Backup> {
  const reader = new BackupReader(file, name);
  const header = (await reader.line()) as Partial<BackupHeader>;
  if (!Number.isInteger(header.signalboxBackup)) throw new OperatorError(`${name} is not a backup of Signalbox.`);
  const isKnown = header.signalboxBackup === FORMAT;
  const [problem] = fieldErrors(isKnown ? Header : OtherHeader, header);
  if (problem)
    throw new OperatorError(`${name} is damaged: its first line is wrong (${problem.path}). Use another backup.`);
  if (!isKnown) {
    throw new OperatorError(
      `${name} was written by Signalbox ${header.release} in a form that this release, ${release}, can't read. ` +
        `Restore it with Signalbox ${header.release} or later.`,
    );
  }
  return { ...(header as BackupHeader), tables: () => reader.tables() };
}

class BackupReader {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #name: string;
  #rest: Buffer = Buffer.alloc(0);

  constructor(file: Readable, name: string) {
    this.#name = name;
    this.#chunks = pipeline(file, createGunzip(), () => {})[Symbol.asyncIterator]();
  }

  /** The next line, parsed. */
  async line(): Promise<Record<string, unknown>> {
    for (;;) {
      const end = this.#rest.indexOf(LINE_FEED);
      if (end >= 0) {
        const text = this.#rest.toString('utf8', 0, end);
        this.#rest = this.#rest.subarray(end + 1);
        return this.#parse(text);
      }
      if (this.#rest.length > MAX_LINE_BYTES) throw this.#damaged('a line is too long');
      this.#rest = Buffer.concat([this.#rest, await this.#next()]);
    }
  }

  #parse(text: string): Record<string, unknown> {
    try {
      const value = JSON.parse(text);
      if (typeof value === 'object' && value !== null) return value;
    } catch {
      // Text that is not JSON is refused like any other value.
    }
    throw this.#damaged('a line is not what it should be');
  }

  async *tables(): AsyncGenerator<TableRows> {
    let tables = 0;
    let rows = 0;
    for (;;) {
      const next = await this.line();
      if (next.end === true) {
        if (next.tables !== tables || next.rows !== rows) throw this.#damaged('tables are missing');
        // Reads to the end of gzip, which has a checksum there.
        if (this.#rest.length > 0 || (await this.#read())) throw this.#damaged('something follows its end');
        return;
      }
      const { table: name, columns } = next;
      if (typeof name !== 'string' || !Array.isArray(columns) || columns.some((one) => typeof one !== 'string'))
        throw this.#damaged('the beginning of a table is missing');
      const summer = new TableSummer();
      yield { name, columns, rows: summed(this.#rows(), summer), sum: () => summer.sum } satisfies Table & TableRows;
      const expected = (await this.line()) as unknown as TableSum;
      if (!isSameSum(expected, summer.sum)) throw this.#damaged(`the rows of ${name} differ from what was saved`);
      tables += 1;
      rows += summer.rows;
    }
  }

  /** Up to the end of the table. */
  async *#rows(): AsyncGenerator<Buffer> {
    let data = this.#rest;
    // Whether `data` begins with a row.
    let isAtStart = true;
    for (;;) {
      const end = endOfRows(data, isAtStart);
      if (end >= 0) {
        this.#rest = data.subarray(end + END_OF_ROWS.length);
        if (end > 0) yield data.subarray(0, end);
        return;
      }
      // The end may have arrived in part; a line feed before it decides whether it is one.
      const kept = Math.min(data.length, END_OF_ROWS.length);
      const whole = data.length - kept;
      if (whole > 0) {
        yield data.subarray(0, whole);
        isAtStart = false;
      }
      data = Buffer.concat([data.subarray(whole), await this.#next()]);
    }
  }

  async #next(): Promise<Buffer> {
    const chunk = await this.#read();
    if (!chunk) throw this.#damaged('it is cut off');
    return chunk;
  }

  /** Undefined at the end. */
  async #read(): Promise<Buffer | undefined> {
    try {
      const { value, done } = await this.#chunks.next();
      return done ? undefined : value;
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException;
      if (code === 'Z_DATA_ERROR' && /incorrect header/.test(message)) {
        throw new OperatorError(`${this.#name} is not a backup of Signalbox.`);
      }
      if (code === 'Z_BUF_ERROR') throw this.#damaged('it is cut off');
      if (code.startsWith('Z_')) throw this.#damaged(message);
      throw new OperatorError(`${this.#name} can't be read (${code || message}).`, { cause: error });
    }
  }

  #damaged(problem: string): OperatorError {
    return new OperatorError(`${this.#name} is damaged: ${problem}. Use another backup.`);
  }
}

/** -1 if it is not there. */
function endOfRows(data: Buffer, isAtStart: boolean): number {
  for (let at = data.indexOf(END_OF_ROWS); at >= 0; at = data.indexOf(END_OF_ROWS, at + 1)) {
    if (at === 0 ? isAtStart : data[at - 1] === LINE_FEED) return at;
  }
  return -1;
}
