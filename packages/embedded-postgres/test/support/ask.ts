import { Client } from 'pg';

/** Returns the rows of one statement, on its own connection. */
export async function ask<Row = Record<string, unknown>>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const client = new Client({ connectionString: url });
  // The failed statement reports the error.
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query(text, [...values])).rows as Row[];
  } finally {
    await client.end();
  }
}
