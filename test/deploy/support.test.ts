// What builds images without a container engine reads its files as an engine does, or refuses them.
import { globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { copyContext } from './support/build-context.ts';
import { readCompose } from './support/compose.ts';
import { readDockerfile } from './support/dockerfile.ts';
import { createLocate } from './support/image.ts';

const scratch = mkdtempSync(join(tmpdir(), 'signalbox-engine-'));
afterAll(() => rmSync(scratch, { recursive: true }));

test('the last line of .dockerignore that matches a file, or a folder above it, decides whether the builder gets it', () => {
  const files = [
    'a.txt',
    '.git/config',
    'src/x.ts',
    'src/x.test.ts',
    'src/data/y',
    'src/node_modules/z',
    'docs/a/keep',
    'docs/b',
  ];
  for (const file of files) {
    mkdirSync(dirname(join(scratch, 'from', file)), { recursive: true });
    writeFileSync(join(scratch, 'from', file), '');
  }
  const contextWith = (lines: string[]) => {
    const to = mkdtempSync(join(scratch, 'to-'));
    writeFileSync(join(scratch, 'from/.dockerignore'), `# A comment\n${lines.join('\n')}\n`);
    copyContext(join(scratch, 'from'), to);
    const found = globSync(['**/*', '.*', '.git/*'], { cwd: to, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    return found.map(({ parentPath, name }) => join(parentPath, name).slice(to.length + 1)).toSorted();
  };
  expect(contextWith(['*', '!src', '!docs/a/keep', '**/node_modules', '**/data', '**/*.test.ts'])).toEqual([
    'docs/a/keep',
    'src/x.ts',
  ]);
  expect(contextWith(['src', '.git', '.dockerignore', 'docs/?'])).toEqual(['a.txt']);
});

test('an instruction or a key that is not known is refused', () => {
  expect(() => readDockerfile('FROM a\nADD b c')).toThrow('This instruction is not known here: ADD b c');
  expect(() => readDockerfile('RUN x')).toThrow('This instruction is not known here: RUN x');
  const variable = (text: string) => `$\{${text}}`;
  const compose = (services: object, more: object = {}) => {
    const file = join(scratch, 'compose.yaml');
    writeFileSync(file, JSON.stringify({ services, ...more }));
    return () => readCompose(file, { SET: 'x' });
  };
  expect(compose({ a: { depend_on: ['b'] } })).toThrow('a key depend_on in a');
  expect(compose({ a: { depends_on: { b: { condition: 'service_started' } } } })).toThrow('the service b');
  expect(compose({ a: { depends_on: { b: { condition: 'service_healthy' } } }, b: {} })).toThrow('a health check of b');
  expect(compose({ a: { volumes: ['data:/data'] } })).toThrow('the volume data of a');
  expect(compose({ a: { command: [`${variable('UNSET:?see the README')}`] } })).toThrow('UNSET: see the README');
  const read = compose({
    a: { command: [`${variable('SET')} ${variable('UNSET:-y')} $$z`, `/x:${variable('SET')}`] },
  })();
  expect(read.services.a!.command).toEqual(['x y $z', '/x:x']);
});

test('paths of an image become paths below its root, and nothing else changes', () => {
  const locate = createLocate({ root: '/r' }, { '/data': '/v' });
  expect(locate('ln -s /app/x /usr/local/bin/y && cat /data/z /database >/dev/null')).toBe(
    'ln -s /r/app/x /r/usr/local/bin/y && cat /v/z /r/database >/dev/null',
  );
  const others = "fetch('http://127.0.0.1:4500/readyz') ./a packages/b postgres://u:p@host/d";
  expect(locate(others)).toBe(others);
});
