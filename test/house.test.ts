// House rules: what may read the clock and the environment, how long a file may be, which words are avoided. Those about imports are in
// imports.test.ts.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checksumLine, readMigrations } from '../packages/server/src/db/schema/migration-files.ts';
import config from '../vitest.config.ts';
import {
  everything,
  importsOf,
  isTest,
  onlyTypes,
  programs,
  root,
  type Source,
  server,
  service,
  sources,
  uses,
} from './sources.ts';

test('a migration does not change: SHA256SUMS has the checksum with which it was added', async () => {
  const migrations = await readMigrations();
  const sums = readFileSync(join(root, 'packages/server/src/db/migrations/SHA256SUMS'), 'utf8');
  expect(sums).toBe(migrations.map(checksumLine).join(''));
});

test('the sources were found', () => {
  expect(server.length).toBeGreaterThan(40);
  expect(everything.map(({ file }) => file)).toContain('test/house.test.ts');
});

test('every request to an address that a user configured goes through egress/', () => {
  const ways = [
    'undici',
    'node:http',
    'node:https',
    'node:net',
    'node:tls',
    'node:dns',
    'node:dns/promises',
    'node:dgram',
  ];
  const allowed: Record<string, string> = {
    'packages/server/src/http/connection/telemetry.ts': 'the names of HTTP methods',
    'packages/embedded-postgres/src/endpoint.ts': 'finds a free port',
    'packages/server/src/operator/listen.ts': 'tries whether a port of this machine is free',
    'packages/server/src/environments/secrets.ts': 'distinguishes an address from a name',
  };
  const found = service
    .filter(({ file }) => !file.startsWith('packages/server/src/egress/'))
    .filter((source) =>
      source.lines.some((line) => {
        const specifier = /^import (?!type ).* from '([^']+)'/.exec(line)?.[1];
        return specifier !== undefined && ways.includes(specifier);
      }),
    )
    .map(({ file }) => file);
  expect(found.filter((file) => !(file in allowed))).toEqual([]);
  // The collector is the operator's, and usually on this machine or in its network.
  const fetching = { 'packages/server/src/observe/otlp.ts': 'sends spans to the collector' };
  expect(uses(service, /(?<![\w.])(?<!function )fetch\(/, fetching)).toEqual([]);
});

test('only config.ts reads the environment', () => {
  const allowed = {
    'packages/server/src/config/config.ts': 'the only reader',
    'packages/server/src/http/reference/page.ts': 'in a sample program',
    'packages/cli/src/newer-node.ts': 'the npm that runs the command',
    'packages/cli/src/terminal.ts': 'a client of the service; an API key has no option, which others could read',
    'packages/console/src/pages/webhooks/new-secret.tsx': 'in a sample program',
    'packages/console/src/pages/system/charts.tsx': 'amounts that nothing has cost',
    'packages/console/src/pages/sessions/trace/as-program.ts': 'in a sample program',
  };
  expect(uses(sources, /process\.env\b/, allowed)).toEqual([]);
});

test('only the clocks read the time', () => {
  const allowed = {
    'packages/server/src/lib/clock.ts': 'the clock of the service',
    'packages/server/src/lib/ids.ts': 'when an id was created, for its order; no state depends on it',
    'packages/server/src/http/admission/loop-queue.ts': 'how long the event loop was blocked; no state depends on it',
    'packages/server/src/egress/exchange.ts': 'how long a server was waited for; no state depends on it',
    'packages/client/src/time.ts': 'the clock of the client',
    'packages/console/src/ui/time.tsx': 'the clock of the console',
    'packages/console/src/pages/approvals/confirm.tsx': 'recognizes a double tap; no state depends on it',
    'packages/cli/src/time.ts': 'the clock of the command line',
    'packages/cli/src/commands/start.ts': 'recognizes a forwarded Ctrl-C; no state depends on it',
  };
  expect(uses(sources, /Date\.now\(|new Date\(\)|performance\.now\(|Temporal\.Now/, allowed)).toEqual([]);
});

test('only the clock waits; a bare timer only limits what happens on this machine', () => {
  const allowed = {
    'packages/server/src/lib/clock.ts': 'the clock of the service',
    'packages/client/src/time.ts': 'the clock of the client',
    'packages/cli/src/time.ts': 'the clock of the command line',
    'packages/server/src/journal/appender.ts': 'collects text for a few milliseconds',
    'packages/server/src/db/group-commit.ts': 'bounds how long a commit waits for the one before it',
    'packages/server/src/http/stream/sse.ts': 'keeps idle connections open',
    'packages/server/src/egress/connector.ts': 'the deadline of a connection',
    'packages/server/src/egress/connections.ts': 'the lifetime of a connection',
    'packages/server/src/egress/exchange.ts': 'the deadline of an exchange',
    'packages/embedded-postgres/src/locked-server.ts': 'polls a server that starts or stops',
    'packages/embedded-postgres/src/server.ts': 'polls a server that starts or stops',
    'packages/server/src/schemas/threads.ts': 'ends a thread that takes too long or is idle',
  };
  expect(uses(programs, /setTimeout|setInterval|AbortSignal\.timeout/, allowed)).toEqual([]);
});

test('code that waits for a close or an abort notices one that has already happened', () => {
  // `close` and `abort` are emitted once: a listener added afterwards waits forever.
  const closed = {
    'packages/server/src/http/connection/closed.ts': 'the only listener for responses',
    'packages/server/src/egress/sockets.ts': 'for a socket that was just created',
    'packages/embedded-postgres/src/cluster.ts': 'for a process that was just started',
  };
  expect(uses(service, /\.(on|once)\('close'|once\(\w+(\.\w+)*, 'close'/, closed)).toEqual([]);
  const aborted = { 'packages/server/src/lib/aborted.ts': 'the only listener for signals' };
  expect(uses(service, /addEventListener\('abort'/, aborted)).toEqual([]);
});

test('a signal is aborted with a reason, which is cheaper than the exception that Node would create', () => {
  expect(uses(server, /\.abort\(\)/, {})).toEqual([]);
});

test('code in a transaction uses no second connection, which could deadlock the pool', () => {
  const wrong = server
    .filter(({ file }) => !/^packages\/server\/src\/(db\/|lib\/context\.ts$)/.test(file))
    .flatMap(({ file, lines }) =>
      lines.flatMap((line, index) => {
        const isOfCall = /(?<!function )\binTransaction\(/.test(line);
        if (!isOfCall && !/\.transaction\(/.test(line)) return [];
        const [first, ...rest] = [line.slice(line.indexOf('ransaction(')), ...bodyAfter(lines, index)];
        // The inner `ctx`, whose `db` is the transaction, shadows that of the request.
        const isHidden = isOfCall && (/\(tx, ctx\) =>/.test(first!) || rest.length === 0);
        const reaches = isOfCall ? /\bplatform\.db\b|\bpool\b/ : /\bdb\b(?!: tx\b)|\bpool\b/;
        const isWrong = (isOfCall && !isHidden) || [first!, ...rest].some((text) => reaches.test(text));
        return isWrong ? [`${file}:${index + 1}`] : [];
      }),
    );
  expect(wrong).toEqual([]);
  // Only `inTransaction` does this: it joins the request's transaction if there is one.
  const allowed = {
    'packages/server/src/lib/context.ts': 'inTransaction itself',
    'packages/server/src/http/idempotency/idempotency.ts': 'the transaction of a request',
    'packages/server/src/events/denied.ts': 'remains when the request fails',
  };
  expect(uses(server, /\bctx\.db\.transaction\(|'transaction' in/, allowed)).toEqual([]);
});

/** The following lines that are indented more than this one. */
function bodyAfter(lines: readonly string[], index: number): string[] {
  const indent = (line: string) => line.search(/\S/);
  const end = lines.findIndex((line, at) => at > index && line !== '' && indent(line) <= indent(lines[index]!));
  return lines.slice(index + 1, end === -1 ? undefined : end);
}

test('only schemas/ compiles schemas and patterns of users, because it can stop them', () => {
  const allowed = {
    'packages/contract/src/validation/check.ts': 'schemas of the contract, values of limited size',
    'packages/server/src/http/body/validate.ts': 'schemas of the contract',
    'packages/server/src/http/body/compiled.ts': 'schemas of the contract',
    'packages/server/src/http/reference/openapi.ts': 'schemas of the contract',
    'packages/server/src/schemas/judge.ts': 'runs in a thread, unless it is cheap',
    'packages/server/src/schemas/check.ts': 'only judge.ts calls it',
  };
  expect(uses(sources, /from 'typebox\/(schema|compile|value)'/, allowed)).toEqual([]);
  const patterns = {
    'packages/server/src/schemas/check.ts': 'only judge.ts calls it',
    'packages/server/src/schemas/fit.ts': 'only judge.ts and check.ts call it',
    'packages/server/src/schemas/place.ts': 'only fit.ts and check.ts call it',
    'packages/server/src/db/schema/sql-commands.ts': 'parts that are constants',
    'packages/server/src/tools/tool/redact.ts': 'secrets, each character escaped',
    'packages/server/src/journal/cursor.ts': 'a constant',
    'packages/server/src/keys/secret.ts': 'constants',
    'packages/console/src/lib/text-format.ts': 'constants',
  };
  expect(uses(sources, /\bRegExp\(/, patterns)).toEqual([]);
  const folder = 'packages/server/src/schemas/';
  const importersOf = (name: string) =>
    sources
      .filter((source) => importsOf(source).includes(`${folder}${name}`) && !onlyTypes(source, `${folder}${name}`))
      .map(({ file }) => file.replace(folder, ''));
  expect(importersOf('judge.ts')).toEqual(['schemas.ts', 'thread.ts']);
  expect(importersOf('check.ts')).toEqual(['judge.ts']);
  expect(importersOf('fit.ts')).toEqual(['check.ts', 'judge.ts']);
  expect(importersOf('place.ts')).toEqual(['check.ts', 'fit.ts']);
});

test('conflicts are read from row counts, never from the name of a constraint', () => {
  expect(uses(server, /\.constraint\b/)).toEqual([]);
});

test('only a command ends the process or writes to its streams', () => {
  const wrong = uses(
    sources.filter(({ file }) => !/^packages\/(cli|create-signalbox)\//.test(file)),
    /process\.(exit|stdout|stderr|on)\b|console\.(log|info|warn|error)\b/,
    {
      'packages/server/src/http/reference/code-samples.ts': 'in a sample program',
      'packages/console/src/pages/keys/new-secret.tsx': 'in a sample program',
      'packages/console/src/pages/webhooks/new-secret.tsx': 'in a sample program',
      'packages/console/src/pages/system/charts.tsx': 'amounts that nothing has cost',
      'packages/console/src/pages/sessions/trace/as-program.ts': 'in a sample program',
      'packages/client/src/receiver.ts': 'reports what the program has no handler for',
      'packages/client/src/workers/run.ts': 'reports what the program has no handler for',
    },
  );
  expect(wrong).toEqual([]);
});

test('a file at a path that a user names is written by output-file.ts, which removes nothing that it did not create', () => {
  const reads = [
    'access',
    'accessSync',
    'constants',
    'createReadStream',
    'existsSync',
    'readFile',
    'readFileSync',
  ].concat(['readdir', 'readdirSync', 'stat', 'statSync', 'statfs', 'mkdir', 'mkdirSync']);
  const allowed: Record<string, string> = {
    'packages/create-signalbox/src/project.ts': 'writes a project to an empty folder',
    'packages/server/src/lib/files/output-file.ts': 'the only writer',
    'packages/server/src/lib/files/sync-directory.ts': 'opens a directory',
    'packages/server/src/db/start-mark.ts': 'a file of the data directory',
    'packages/server/src/operator/backup.ts': 'opens a file to read it',
    'packages/server/src/operator/restore.ts': 'moves clusters of the data directory',
    'packages/server/src/vault/master-key.ts': 'opens a file to read it',
  };
  const found = sources
    .filter(({ file }) => /^packages\/(cli|create-signalbox|server)\//.test(file))
    .filter(({ text }) =>
      [...text.matchAll(/^import (?!type )([^;]*?) from 'node:fs(?:\/promises)?';/gm)].some(
        ([, names = '']) => !names.startsWith('{') || names.match(/\w+/g)!.some((name) => !reads.includes(name)),
      ),
    )
    .map(({ file }) => file);
  expect(found.toSorted()).toEqual(Object.keys(allowed).toSorted());
});

test('a notice in the console uses the Notice component, which puts text in a paragraph', () => {
  const consoleSources = sources.filter(({ file }) => file.startsWith('packages/console/'));
  expect(
    uses(consoleSources, /className="notice\b/, { 'packages/console/src/ui/notice.tsx': 'the component itself' }),
  ).toEqual([]);
});

test('an amount of dollars is shown with the date of the prices: only by dollars.tsx in the console, and dollars.ts in the command', () => {
  const shown = sources.filter(({ file }) => /^packages\/(console|cli)\//.test(file));
  const allowed = {
    'packages/console/src/lib/dollars.ts': 'the texts, which only ui/dollars.tsx imports',
    'packages/cli/src/dollars.ts': 'the texts',
    'packages/console/src/pages/system/charts.tsx': 'amounts that nothing has cost',
    'packages/console/src/pages/sessions/trace/as-program.ts': 'a variable of a shell',
  };
  expect(uses(shown, /\$\$\{|currency: 'USD'/, allowed)).toEqual([]);
  const importers = sources.filter(({ text }) => text.includes("/lib/dollars.ts'"));
  expect(importers.map(({ file }) => file)).toEqual(['packages/console/src/ui/dollars.tsx']);
});

test('the styles of the console take colors, type, radii, layers and lengths in pixels from its tokens', () => {
  const directory = join(root, 'packages/console/src');
  const tokens = readFileSync(join(directory, 'styles/tokens.css'), 'utf8');
  const namesIn = (css: string) => [...css.matchAll(/(?<![\w-])(--[\w-]+):/g)].map(([, name]) => name!);
  const known = new Set(namesIn(tokens));
  const raw: Record<string, RegExp> = {
    color: /#[\da-f]{3,8}\b|\b(rgba?|hsla?|hwb|lab|lch|oklab|oklch|light-dark)\(|:\s*(white|black|red|gray|grey)\b/i,
    'font-size': /font-size:(?!.*var\(--size-|\s*(inherit|1rem|[\d.]+em))/,
    'font-weight': /font-weight:(?!\s*(var\(--weight-|inherit))/,
    'border-radius': /border-[\w-]*radius:(?!.*var\(--radius|\s*(0|1px|50%|inherit))/,
    'z-index': /z-index:(?!\s*(var\(--layer-|-?[01];))/,
    // Lines, and what has to meet a line.
    length: /^(?!\s*@(media|container)).*(?<![\d.-])(?![0-6]px)\d+px/,
  };
  const wrong = globSync('**/*.css', { cwd: directory })
    .map(String)
    .filter((file) => !/styles.(tokens|fonts)\.css$/.test(file))
    .flatMap((file) => {
      const text = readFileSync(join(directory, file), 'utf8').replaceAll(/\/\*.*?\*\//gs, (comment) =>
        comment.replaceAll(/[^\n]/g, ' '),
      );
      const own = new Set(namesIn(text));
      return text.split('\n').flatMap((line, index) => {
        const unknown = [...line.matchAll(/var\((--(?!radix-|scalar-)[\w-]+)/g)]
          .map(([, name]) => name!)
          .filter((name) => !known.has(name) && !own.has(name));
        const kinds = Object.keys(raw).filter((kind) => raw[kind]!.test(line));
        return [...unknown, ...kinds].map((what) => `${file}:${index + 1} ${what}: ${line.trim()}`);
      });
    });
  expect(wrong).toEqual([]);
});

// A longer file usually has a second noun.
const MAX_LINES = 400;

test(`no source file is longer than ${MAX_LINES} lines, unless there is a reason`, () => {
  const allowed: Record<string, string> = {
    'packages/client/src/types.generated.ts': 'generated',
  };
  const long = sources
    .filter(({ lines }) => lines.length > MAX_LINES)
    .map(({ file, lines }) => `${file}: ${lines.length}`);
  const found = long.map((entry) => entry.split(':')[0]!);
  const unneeded = Object.keys(allowed).filter((file) => !found.includes(file));
  expect(long.filter((entry) => !(entry.split(':')[0]! in allowed))).toEqual([]);
  expect(unneeded, 'need no allowance').toEqual([]);
});

test('no test is skipped or run alone, and there are no TODO comments', () => {
  const self = 'test/house.test.ts';
  const others = everything.filter(({ file }) => file !== self);
  expect(uses(others.filter(isTest), /\b(test|describe|it)\.(only|skip|todo)\(/)).toEqual([]);
  const unfinished = others.flatMap(({ file, lines }) =>
    lines.flatMap((line, index) => (/\b(TODO|FIXME|XXX|HACK)\b/.test(line) ? [`${file}:${index + 1}`] : [])),
  );
  expect(unfinished).toEqual([]);
});

// Documents that are not in the repository, and phrases that have a plainer word: "stands in" is "is in", "whoever calls" is "the
// caller", "goes on" is "continues", "in vain" is "without effect", "mend" is "fix".
const AVOIDED = new RegExp(
  [
    '(?<![\\w-])api\\.md\\b|\\bsource section',
    '\\bstands in\\b|\\bwhoever\\b|\\bsomebody\\b|\\btell apart\\b|\\bgoes on\\b|\\bin vain\\b|\\bmend(s|ed)?\\b',
    '\\bis told\\b',
  ].join('|'),
  'i',
);

test('sources, tests and documentation use plain English, and cite no document that is not in the repository', () => {
  const texts = globSync(['{docs,packages,examples}/**/*.{md,sql}', '*.md'], { cwd: root })
    .map((path) => String(path).replaceAll('\\', '/'))
    .filter((file) => !file.includes('node_modules/') && !file.includes('/dist/'))
    .map((file) => ({ file, lines: readFileSync(join(root, file), 'utf8').split('\n') }));
  const found = [...everything, ...texts]
    .filter(({ file }) => file !== 'test/house.test.ts')
    .flatMap(({ file, lines }) =>
      lines.flatMap((line, at) => (AVOIDED.test(line) ? [`${file}:${at + 1}: ${line.trim()}`] : [])),
    );
  expect(found).toEqual([]);
});

// "Of the last chunk." makes the reader look for the noun: "The number of the last chunk." says it. Descriptions of the API are comments of
// the generated client.
const WITHOUT_NOUN = /^\s*(\/\/|\/\*\*|\*) (Of|Those|The same (as|for|in|of|on|over|to|with|without)) /;

test('a comment begins with its noun', () => {
  const found = everything.flatMap(({ file, lines }) =>
    lines.flatMap((line, at) => (WITHOUT_NOUN.test(line) ? [`${file}:${at + 1}: ${line.trim()}`] : [])),
  );
  expect(found).toEqual([]);
});

test('a test moves a manual clock only while the service is idle, and waits for a condition with the clock’s own methods', () => {
  const tests = everything.filter(isTest).filter(({ text }) => /[cC]lock\.(advance|leap|pass)/.test(text));
  expect(uses(tests, /(^\s*|[;){] )(void )?[\w.]*[cC]lock\.(advance|pass\w*)\(/)).toEqual([]);
  const atOnce = {
    'packages/server/test/support/manual-clock.ts': 'the clock itself',
    'packages/server/test/support/simulation.ts': 'polls and retries overlap with the work of the nodes',
    'packages/server/test/approvals/approvals.test.ts': 'a decision races with the expiry',
    'packages/server/test/webhooks/delivery.test.ts': 'commits overlap with deliveries, for less than their time limit',
    'packages/server/test/webhooks/journal-tail.test.ts':
      'commits overlap with deliveries, for less than their time limit',
    'packages/server/test/webhooks/slow-searches.test.ts': 'a retry becomes due during a statement',
    'packages/server/src/tools/mcp/mcp-pool.test.ts': 'a connection is taken at the moment its time ends',
    'packages/server/src/http/admission/windows.test.ts': 'nothing runs',
  };
  expect(uses(tests, /\.leap\(/, atOnce)).toEqual([]);
  // A poll in real time lets the clock run ahead of everything that it does not see, such as a browser.
  const ahead = tests.filter(({ text }) => /passWhile\(\s*(expect\s*\.poll|vi\s*\.wait)/.test(text));
  expect(ahead.map(({ file }) => file)).toEqual([]);
  const loops = tests.flatMap(({ file, lines }) =>
    lines.flatMap((line, index) => {
      if (!/\b(while|do)\b [({]|\bfor \(;|\.(poll|waitFor|waitUntil)\(/.test(line)) return [];
      return [line, ...bodyAfter(lines, index)].some((text) => /\.advance\(/.test(text))
        ? [`${file}:${index + 1}`]
        : [];
    }),
  );
  expect(loops).toEqual([]);
});

test('a test that changes a module runs in a process of its own', () => {
  const changes = (source: Source) => isTest(source) && /\bvi\.(?:do)?mock\(/i.test(source.text);
  const changing = everything.filter(changes).map(({ file }) => file);
  const projects = config.test!.projects as { test: { include: string[]; isolate?: boolean } }[];
  const isolated = projects.filter(({ test }) => test.isolate).flatMap(({ test }) => test.include);
  expect(changing.length).toBeGreaterThan(0);
  expect(isolated.toSorted()).toEqual(changing.toSorted());
});

test('a module that many test files import has no hook at its top, which would run for the first of them only', () => {
  const support = everything.filter((source) => isTest(source) && !source.file.endsWith('.test.ts'));
  const setup = { 'packages/server/test/support/each-file.ts': 'runs before each test file' };
  expect(uses(support, /^(?:before|after)(?:All|Each)\(/, setup)).toEqual([]);
});
