// Every TypeScript snippet in the documentation is checked against the types of the packages.
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const pages = globSync(['*.md', 'docs/**/*.md', 'packages/*/{README,SKILL}.md'], { cwd: root }).toSorted();

/** Declarations of what the snippets use but do not declare. */
const world = `
import type { Message, RunOptions, Signalbox, Tool, Turn } from './imports.ts';
declare global {
  const client: Signalbox;
  const agentId: string, sessionId: string, operationId: string, toolCallId: string, scheduleId: string, deliveryId: string, fileId: string, keyId: string;
  const destination: { destinationId: string };
  const bytes: Uint8Array<ArrayBuffer>;
  const tools: Tool[];
  const stopping: AbortController;
  const payments: { refund(order: string): Promise<string> };
  function think(messages: readonly Message[], tools: Turn['tools']): Promise<{ text: string; calls: { tool: string; input: unknown }[] }>;
}
export type { RunOptions, Tool };
`;
const imports = `
export type * from '@signalbox/client';
`;

/** A module with the snippet. Tools and options of `run` are shown without their context. */
function moduleOf(snippet: string): string {
  if (/^\{ ?(type|\n)/.test(snippet))
    return `const tool: import('@signalbox/client').Tool = ${snippet};\nexport { tool };`;
  if (snippet.startsWith('onTurn:')) {
    return `export const options: Pick<import('@signalbox/client').RunOptions, 'onTurn'> = {\n${snippet}\n};`;
  }
  return `${snippet}\nexport {};`;
}

const document: { paths: Record<string, Record<string, Operation>> } = JSON.parse(
  readFileSync(join(root, 'openapi.json'), 'utf8'),
);
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));

interface Operation {
  operationId: string;
  'x-codeSamples'?: { lang: string; source: string }[];
}

test('every TypeScript snippet in the documentation and in the API reference matches the types of the client', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-snippets-'));
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'world.d.ts'), world);
    writeFileSync(join(folder, 'imports.ts'), imports);
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    let count = 0;
    for (const page of pages) {
      for (const { 1: extension, 2: snippet = '', index } of readFileSync(join(root, page), 'utf8').matchAll(
        /^```(tsx?)\n([\s\S]*?)^```/gm,
      )) {
        const line = readFileSync(join(root, page), 'utf8').slice(0, index).split('\n').length;
        writeFileSync(join(folder, `${page.replaceAll('/', '-')}-${line}.${extension}`), moduleOf(snippet.trimEnd()));
        count += 1;
      }
    }
    expect(count).toBeGreaterThan(25);
    for (const { operationId, 'x-codeSamples': samples = [] } of operations) {
      for (const { lang, source } of samples) {
        expect(lang, operationId).toBe('typescript');
        writeFileSync(join(folder, `reference-${operationId}.ts`), source);
      }
    }
    const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
    const typeRoots = [join(root, 'node_modules/@types')];
    const lib = [...compilerOptions.lib, 'DOM', 'DOM.Iterable'];
    const config = {
      compilerOptions: { ...compilerOptions, typeRoots, lib, jsx: 'react-jsx' },
      include: ['*.ts', '*.tsx'],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const { status, stdout, stderr } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
