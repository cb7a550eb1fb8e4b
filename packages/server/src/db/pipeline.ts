// Sends several statements in one round trip.
//
// A pipeline is one write that ends with one Sync. PostgreSQL runs its statements in order and, after the first that fails, skips
// everything up to the Sync. `begin` and the next statement can therefore be sent together: if `begin` fails, the statement is
// skipped. (pg's own `pipeline` option is not used because it sends a Sync after every statement: a statement after a failed `begin`
// would run and commit outside any transaction.)
//
// pg accepts custom query objects; it calls the handle… methods below. While pg reads a response, it registers prepared statements by
// the object's `name` and `text`, so these return those of the current statement.
import { type Connection, DatabaseError } from 'pg';
import { encodeValue, parserOf, type WireValue } from './values.ts';

/** A statement with encoded parameters. Without a name it is parsed each time. */
export interface Statement {
  readonly text: string;
  readonly values: WireValue[];
  readonly name: string | undefined;
}

export interface StatementResult {
  rows: Record<string, unknown>[];
  /** PostgreSQL's command tag, such as `INSERT 0 2` or `COMMIT`. */
  tag: string;
}

/**
 * How a pipeline ended. Without `error` there is one result for each statement. With `error` there are results for the statements
 * before the failed one, whose index is `results.length`; later statements were not run.
 */
export interface PipelineOutcome {
  results: StatementResult[];
  error?: Error;
  /** The connection was lost, so what the server did is unknown. */
  connectionLost?: boolean;
}

interface WireConnection {
  stream: Connection['stream'];
  parsedStatements: Record<string, string>;
  submittedNamedStatements: Record<string, string>;
  parse(message: { text: string; name: string }): void;
  bind(message: { statement: string; values: WireValue[] }): void;
  describe(message: { type: 'P' }): void;
  execute(): void;
  sync(): void;
}

const prepared = new WeakMap<object, number>();

/** How many statements were prepared on a connection. It keeps each of them, with its plan, until it is closed. */
export function preparedOn(connection: object): number {
  return prepared.get(connection) ?? 0;
}

interface Column {
  name: string;
  parse: (text: string) => unknown;
}

/** Encodes the parameters, so that an invalid one throws before anything is sent. */
export function statement(text: string, values: readonly unknown[], name: string | undefined): Statement {
  return { text, values: values.map(encodeValue), name };
}

/** Pass it to `client.query`. `ended` is called once, when the server has responded to the Sync or with the error. */
export class Pipeline {
  /** pg calls this instead when `query` is given a callback. */
  callback: undefined;
  readonly #statements: readonly Statement[];
  readonly #ended: (outcome: PipelineOutcome) => void;
  readonly #results: StatementResult[] = [];
  #rows: Record<string, unknown>[] = [];
  #columns: Column[] = [];
  #parseError: Error | undefined;

  constructor(statements: readonly Statement[], ended: (outcome: PipelineOutcome) => void) {
    this.#statements = statements;
    this.#ended = ended;
  }

  get name(): string | undefined {
    return this.#statements[this.#results.length]?.name;
  }

  get text(): string | undefined {
    return this.#statements[this.#results.length]?.text;
  }

  submit(connection: unknown): null {
    const wire = connection as WireConnection;
    wire.stream.cork();
    try {
      for (const { name = '', text, values } of this.#statements) {
        if (name === '' || !(wire.parsedStatements[name] ?? wire.submittedNamedStatements[name])) {
          wire.parse({ text, name });
          if (name !== '') {
            wire.submittedNamedStatements[name] = text;
            prepared.set(wire, preparedOn(wire) + 1);
          }
        }
        wire.bind({ statement: name, values });
        wire.describe({ type: 'P' });
        wire.execute();
      }
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
    return null;
  }

  handleRowDescription(message: { fields: { name: string; dataTypeID: number }[] }): void {
    this.#columns = message.fields.map((field) => ({ name: field.name, parse: parserOf(field.dataTypeID) }));
  }

  handleDataRow(message: { fields: (string | null)[] }): void {
    if (this.#parseError) return;
    const row: Record<string, unknown> = {};
    try {
      for (let index = 0; index < this.#columns.length; index += 1) {
        const { name, parse } = this.#columns[index] as Column;
        const text = message.fields[index] ?? null;
        row[name] = text === null ? null : parse(text);
      }
    } catch (error) {
      this.#parseError = error as Error;
    }
    this.#rows.push(row);
  }

  handleCommandComplete(message: { text: string }): void {
    this.#results.push({ rows: this.#rows, tag: message.text });
    this.#rows = [];
    this.#columns = [];
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete({ text: '' });
  }

  handleReadyForQuery(): void {
    this.#ended(this.#parseError ? { results: this.#results, error: this.#parseError } : { results: this.#results });
  }

  handleError(error: Error, connection: unknown): void {
    const { submittedNamedStatements } = connection as WireConnection;
    for (const { name } of this.#statements) if (name) delete submittedNamedStatements[name];
    this.#ended({ results: this.#results, error, connectionLost: !isServerError(error) });
  }
}

/** Whether the server sent the error, as opposed to a lost connection. */
export function isServerError(error: unknown): error is DatabaseError & { code: string } {
  return error instanceof DatabaseError;
}

/** How many rows the statement affected, from its command tag (`INSERT 0 2`, `UPDATE 5`, `SELECT 7`). */
export function rowCount({ tag }: StatementResult): number {
  return Number(/\d+$/.exec(tag)?.[0] ?? 0);
}
