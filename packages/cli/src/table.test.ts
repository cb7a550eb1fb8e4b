import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { type Column, Table } from './table.ts';
import { Output } from './terminal.ts';
import { widthOf } from './text.ts';

interface Row {
  id: string;
  name: string;
  note: string;
}
const columns: Column<Row>[] = [
  { header: 'ID', cell: ({ id }) => id },
  { header: 'NAME', cell: ({ name }) => name, shrinks: true, style: () => 'red' },
  { header: 'NOTE', cell: ({ note }) => note, shrinks: true, optional: true },
];

async function printed(pages: Row[][], { width, env = {} }: { width?: number; env?: Record<string, string> } = {}) {
  let text = '';
  const sink = new Writable({
    write(part, _, done) {
      text += part;
      done();
    },
  });
  const stream = Object.assign(sink, width === undefined ? {} : { isTTY: true, columns: width });
  const table = new Table(new Output(stream, env), columns);
  for (const page of pages) await table.print(page);
  return text;
}

const row = (id: string, name: string, note = '') => ({ id, name, note });

test('on a pipe nothing is cut or colored, and a column that is empty is left out', async () => {
  expect(await printed([[row('a1', '山田'), row('a2', 'x'.repeat(200))]])).toBe(
    `ID  NAME\na1  山田\na2  ${'x'.repeat(200)}\n`,
  );
});

test('no line is wider than the terminal, except for an id', async () => {
  const long = [row('id_0123456789', '山田'.repeat(30), 'note '.repeat(20))];
  for (const width of [30, 40, 80, 120]) {
    const text = await printed([long, long], { width, env: { NO_COLOR: '1' } });
    const lines = text.split('\n').slice(0, -1);
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
    expect(lines[1]).toContain('id_0123456789');
    expect(lines[1]).toContain('…');
    expect(lines[2]).toBe(lines[1]);
  }
  expect(await printed([long], { width: 10 })).toContain('id_0123456789');
});

test('color is for terminals, and follows NO_COLOR and FORCE_COLOR', async () => {
  const isColored = async (options: Parameters<typeof printed>[1]) =>
    (await printed([[row('1', 'a')]], options)).includes('\u001b[31ma\u001b');
  expect(await isColored({ width: 80 })).toBe(true);
  expect(await isColored({ width: 80, env: { NO_COLOR: '1' } })).toBe(false);
  expect(await isColored({ width: 80, env: { TERM: 'dumb' } })).toBe(false);
  expect(await isColored({})).toBe(false);
  expect(await isColored({ env: { FORCE_COLOR: '1' } })).toBe(true);
  expect(await isColored({ width: 80, env: { FORCE_COLOR: '0' } })).toBe(false);
});
