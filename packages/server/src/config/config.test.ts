import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { ConfigError, readConfig, settings, unknownVariables } from './config.ts';
import type { Setting } from './setting.ts';
import { settingGroups } from './settings.ts';

const directory = mkdtempSync(join(tmpdir(), 'signalbox-config-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** A new file with this text. */
function fileOf(text: string): string {
  const path = join(directory, String(Math.random()));
  writeFileSync(path, text);
  return path;
}

function problemsOf(options: Record<string, string>, env: Record<string, string>): readonly string[] {
  try {
    readConfig(options, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

test('with nothing set, everything has its default', () => {
  const config = readConfig({}, {});
  expect(config).toMatchObject({ port: 4500, host: '127.0.0.1', logLevel: 'info' });
  expect([...config.roles]).toEqual(['api', 'runtime', 'delivery']);
  expect(config.dataDir).toBe(`${process.cwd()}/data`);
  expect(config).toMatchObject({ databaseUrl: undefined, masterKeys: undefined, adminKeyFile: undefined });
});

test('an option takes precedence over its variable, and an empty variable counts as not set', () => {
  expect(readConfig({ port: '1' }, { SIGNALBOX_PORT: '2' }).port).toBe(1);
  expect(readConfig({}, { SIGNALBOX_PORT: '2' }).port).toBe(2);
  expect(readConfig({}, { SIGNALBOX_PORT: '', DATABASE_URL: '' })).toMatchObject({
    port: 4500,
    databaseUrl: undefined,
  });
});

test('every variable, and the key of every provider, can be in a file', () => {
  for (const { variable } of Object.values<{ variable: string }>(settings)) {
    expect(problemsOf({}, { [`${variable}_FILE`]: '/nowhere/secret' })[0], variable).toBe(
      `${variable}_FILE: /nowhere/secret can't be read (ENOENT)`,
    );
  }
  const key = Buffer.alloc(32, 7);
  const config = readConfig(
    {},
    {
      DATABASE_URL_FILE: fileOf('postgres://u:p@h/d\n'),
      SIGNALBOX_LISTEN_URL_FILE: fileOf('postgres://u:p@direct/d'),
      SIGNALBOX_MASTER_KEY_FILE: fileOf(` ${key.toString('base64')}\r\n`),
      SIGNALBOX_PROVIDER_KEYS: 'openai',
      OPENAI_API_KEY_FILE: fileOf('sk-1\n'),
      SIGNALBOX_METRICS_TOKEN_FILE: '',
    },
  );
  expect(config).toMatchObject({
    databaseUrl: 'postgres://u:p@h/d',
    listenUrl: 'postgres://u:p@direct/d',
    masterKeys: [key],
    providerKeys: { OPENAI_API_KEY: 'sk-1' },
    metricsToken: undefined,
  });
});

test('a file that is empty, unreadable or next to its own variable is a problem, which shows neither value', () => {
  const env = {
    DATABASE_URL: 'postgres://u:hunter2@h/d',
    DATABASE_URL_FILE: fileOf('postgres://u:hunter2@other/d'),
    SIGNALBOX_MASTER_KEY_FILE: fileOf(' \n'),
    SIGNALBOX_METRICS_TOKEN_FILE: directory,
    SIGNALBOX_EGRESS_PROXY_FILE: fileOf('hunter2'),
  };
  const problems = problemsOf({}, env);
  expect(problems.toSorted()).toEqual([
    'DATABASE_URL_FILE: DATABASE_URL is set too; use one of the two',
    expect.stringMatching(/^SIGNALBOX_EGRESS_PROXY: /),
    `SIGNALBOX_MASTER_KEY_FILE: ${env.SIGNALBOX_MASTER_KEY_FILE} is empty`,
    `SIGNALBOX_METRICS_TOKEN_FILE: ${directory} can't be read (EISDIR)`,
  ]);
  expect(problems.join()).not.toContain('hunter2');
});

test('headers for the collector are parsed as OpenTelemetry specifies, and no problem shows a value', () => {
  const read = (text: string) => readConfig({}, { OTEL_EXPORTER_OTLP_HEADERS: text }).otlpHeaders;
  expect(read('')).toEqual({});
  expect(read('x-api-key=abc%2Cdef, authorization = Bearer%20one==')).toEqual({
    'x-api-key': 'abc,def',
    authorization: 'Bearer one==',
  });
  for (const [variable, value] of [
    ['OTEL_EXPORTER_OTLP_HEADERS', 'hunter2'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'x-api-key=hunter2%'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'grpc://hunter2@collector'],
    ['SIGNALBOX_METRICS_TOKEN', 'hunter2'],
    ['SIGNALBOX_METRICS_TOKEN', 'hunter2 and more of it'],
  ] as const) {
    const problems = problemsOf({}, { [variable]: value });
    expect(problems.length, value).toBe(1);
    expect(problems[0]).toMatch(new RegExp(`^${variable}: `));
    expect(problems[0]).not.toContain('hunter2');
  }
});

test('content is captured under the names that OpenTelemetry has for it, in spans only', () => {
  const variable = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';
  const read = (text: string) => readConfig({}, { [variable]: text }).otlpContent;
  expect(['true', 'True', 'SPAN_ONLY', 'span_only'].map(read)).toEqual([true, true, true, true]);
  expect(['false', 'NO_CONTENT', ''].map(read)).toEqual([false, false, false]);
  const right = 'use SPAN_ONLY (or true), or NO_CONTENT (or false)';
  for (const [text, why] of [
    ['yes', ''],
    ['EVENT_ONLY', ', as there are no events'],
    ['SPAN_AND_EVENT', ', as there are no events'],
  ]) {
    expect(problemsOf({}, { [variable]: text! })).toEqual([`${variable}: "${text}" is not possible${why}; ${right}`]);
  }
});

test('every problem is reported at once, named by its option or variable', () => {
  const problems = problemsOf(
    { port: 'http' },
    {
      SIGNALBOX_HOST: 'http://here',
      DATABASE_URL: 'mysql://root:hunter2@db',
      SIGNALBOX_MASTER_KEY: 'hunter2',
      SIGNALBOX_EGRESS_ALLOW: '10.0.0.0/99',
      SIGNALBOX_PROVIDER_KEYS: 'openai,mistral,google',
      OPENAI_API_KEY: 'hunter2\nx',
      SIGNALBOX_ROLES: 'api,webhooks',
      SIGNALBOX_LOG_LEVEL: 'verbose',
      SIGNALBOX_LOG_FORMAT: 'xml',
    },
  );
  expect(problems.map((problem) => problem.split(':')[0])).toEqual([
    '--port',
    'SIGNALBOX_HOST',
    'SIGNALBOX_EGRESS_ALLOW',
    'DATABASE_URL',
    'SIGNALBOX_ROLES',
    'SIGNALBOX_MASTER_KEY',
    'SIGNALBOX_PROVIDER_KEYS',
    'SIGNALBOX_PROVIDER_KEYS',
    'SIGNALBOX_PROVIDER_KEYS',
    'SIGNALBOX_LOG_LEVEL',
    'SIGNALBOX_LOG_FORMAT',
  ]);
  expect(problems.join()).not.toContain('hunter2');
});

test('a provider’s key is read only if the operator lists the provider', () => {
  const env = { OPENAI_API_KEY: 'sk-1', ANTHROPIC_API_KEY: ' sk-2\n' };
  expect(readConfig({}, env).providerKeys).toEqual({});
  expect(readConfig({}, { ...env, SIGNALBOX_PROVIDER_KEYS: 'anthropic' }).providerKeys).toEqual({
    ANTHROPIC_API_KEY: 'sk-2',
  });
});

test.each(['-1', '65536', '4500.5', '0x50', ' ', 'http'])('%j is refused as a port', (port) => {
  expect(problemsOf({ port }, {})).toHaveLength(1);
});

test('a misspelt variable is refused with the one that was meant', () => {
  const meant = {
    SIGNALBOX_EGRES_ALLOW: 'SIGNALBOX_EGRESS_ALLOW',
    SIGNALBOX_TRUSTED_PROXY: 'SIGNALBOX_TRUST_PROXY',
    SIGNALBOX_MASTERKEY_FILE: 'SIGNALBOX_MASTER_KEY_FILE',
    SIGNALBOX_METRIC_PORT: 'SIGNALBOX_METRICS_PORT',
    SIGNALBOX_DATABASE_URL: 'DATABASE_URL',
  };
  const env = Object.fromEntries(Object.keys(meant).map((variable) => [variable, 'hunter2']));
  expect(problemsOf({}, env)).toEqual(
    Object.entries(meant).map(([variable, one]) => `${variable}: is not a setting. Did you mean ${one}?`),
  );
  expect(problemsOf({}, { SIGNALBOX_EGRES_ALLOW: '' })).toEqual([]);
});

test('variables of programs, of the command line and of orchestrators do not prevent the start', () => {
  const env = {
    SIGNALBOX_URL: 'http://127.0.0.1:4500',
    SIGNALBOX_API_KEY: 'x',
    SIGNALBOX_SIGNING_SECRET: 'x',
    SIGNALBOX_PORT: 'tcp://10.0.0.1:4500',
    SIGNALBOX_PORT_4500_TCP: 'tcp://10.0.0.1:4500',
    SIGNALBOX_PORT_4500_TCP_ADDR: '10.0.0.1',
    SIGNALBOX_SERVICE_HOST: '10.0.0.1',
    SIGNALBOX_SERVICE_PORT: '4500',
    SIGNALBOX_SERVICE_PORT_HTTP: '4500',
    SIGNALBOX_METRICS_PORT: 'tcp://10.0.0.1:9400',
    SIGNALBOX_METRICS_SERVICE_HOST: '10.0.0.1',
  };
  expect(readConfig({}, env)).toMatchObject({ port: 4500, metricsPort: undefined });
  expect(unknownVariables(env)).toEqual([]);
  // They may be another program's, but the operator may also believe in them.
  expect(unknownVariables({ ...env, SIGNALBOX_MODEL: 'x', SIGNALBOX_ALLOWED_IPS: 'x', OTHER: 'x' })).toEqual([
    'SIGNALBOX_MODEL',
    'SIGNALBOX_ALLOWED_IPS',
  ]);
});

test('a listen URL without a database URL is refused', () => {
  expect(problemsOf({}, { SIGNALBOX_LISTEN_URL: 'postgres://u:p@h/d' })).toHaveLength(1);
  expect(problemsOf({}, { SIGNALBOX_LISTEN_URL: 'postgres://u:p@h/d', DATABASE_URL: 'postgres://u:p@h/d' })).toEqual(
    [],
  );
});

test('docs/reference/configuration.md has the groups, and every option and variable with its default, in the order of the help', () => {
  const page = readFileSync(new URL('../../../../docs/reference/configuration.md', import.meta.url), 'utf8');
  const documented = page.split(/^## /m).flatMap((section) => {
    const rows = section.split('\n').filter((line) => line.startsWith('| `'));
    const cells = rows.map((row) =>
      row
        .split('|', 4)
        .slice(1)
        .map((cell) => cell.trim()),
    );
    return rows.length === 0 ? [] : [[section.split('\n')[0], cells]];
  });
  const code = (text: string | undefined) => (text ? `\`${text}\`` : '');
  const expected = Object.entries(settingGroups).map(([title, group]) => [
    title,
    Object.values<Setting<unknown>>(group).map((one) => [
      code(one.variable),
      code(one.option && `--${one.option}`),
      code(one.default),
    ]),
  ]);
  expect(documented).toEqual(expected);
});
