import { loadModule, parseSync } from 'libpg-query';
import { beforeAll, expect, test } from 'vitest';
import { readMigrations } from './migration-files.ts';
import { commandsOf } from './sql-commands.ts';

beforeAll(() => loadModule());

test.each([
  ['a comment alone', '-- a; b\n', []],
  ['no semicolon at the end', 'select 1; select 2', ['select 1', 'select 2']],
  ['empty commands', ';; select 1;;', ['select 1']],
  ['comments', '-- a; b\nselect 1 /* ; */; -- c;\n', ['select 1']],
  [
    'texts',
    "select ';', 'it''s;', E'\\';', type'\\'; select 2",
    ["select ';', 'it''s;', E'\\';', type'\\'", 'select 2'],
  ],
  ['names', 'select 1 as "a;""b;"; select 2', ['select 1 as "a;""b;"', 'select 2']],
  [
    'bodies',
    'do $$ begin; end $$; do $a$ $$; $$ $a$; select $1',
    ['do $$ begin; end $$', 'do $a$ $$; $$ $a$', 'select $1'],
  ],
  [
    'several changes of a table',
    "alter table a drop constraint b, add constraint b check (c in ('d,e', 'f')), add g numeric(9, 2); select 1, 2",
    [
      'alter table a drop constraint b',
      "alter table a add constraint b check (c in ('d,e', 'f'))",
      'alter table a add g numeric(9, 2)',
      'select 1, 2',
    ],
  ],
  [
    'changes of named tables',
    'alter table if exists only s."a b" add c int,\n  -- d, e\n  add d int',
    ['alter table if exists only s."a b" add c int', 'alter table if exists only s."a b" add d int'],
  ],
  ['settings of a table', 'alter table a set (b = 1, c = 2)', ['alter table a set (b = 1, c = 2)']],
])('splits a script with %s', (_, script, commands) => {
  expect(commandsOf(script)).toEqual(commands);
});

test('splits every migration into the commands and changes that PostgreSQL finds in it', async () => {
  interface Statement {
    stmt: { AlterTableStmt?: { cmds: unknown[] } };
  }
  const statements = (text: string) => (parseSync(text).stmts ?? []) as Statement[];
  const changes = ({ stmt }: Statement) => stmt.AlterTableStmt?.cmds.length ?? 1;
  for (const { version, text } of await readMigrations()) {
    const commands = commandsOf(text).map(statements);
    expect(commands.length, String(version)).toBe(statements(text).reduce((sum, one) => sum + changes(one), 0));
    for (const command of commands) expect(command.map(changes)).toEqual([1]);
  }
});
