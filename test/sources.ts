// The sources of the repository, for tests that check how they are written.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

export interface Source {
  /** From the root, with `/`. */
  file: string;
  text: string;
  lines: string[];
}

export const everything = globSync(
  ['{packages,examples,bench,proofs,scripts,test}/**/*.{ts,tsx,mjs}', 'docs/.vitepress/*.ts', '*.ts'],
  {
    cwd: root,
    exclude: (path) => /(^|\/)(node_modules|dist)$/.test(String(path)),
  },
)
  .map((path) => String(path).replaceAll('\\', '/'))
  .filter((file) => !file.includes('node_modules/') && !file.includes('/dist/'))
  .toSorted()
  .map((file): Source => {
    const text = readFileSync(join(root, file), 'utf8');
    return { file, text, lines: text.split('\n') };
  });
export const isTest = ({ file }: Source) => /\.test\.ts$|\/test\/|^test\/|^proofs\//.test(file);
/** The code that runs in production. */
export const sources = everything.filter((source) => /^packages\/[\w-]+\/src\//.test(source.file) && !isTest(source));
export const server = sources.filter(({ file }) => file.startsWith('packages/server/src/'));
/** Our own code in the process of the service. */
export const service = [...sources.filter(({ file }) => file.startsWith('packages/embedded-postgres/src/')), ...server];
/** Everything except the code in the browser, where the time is the user's own. */
export const programs = sources.filter(({ file }) => !file.startsWith('packages/console/'));

/** Lines of code that match, as `file:line`, without comments. */
export function uses(of: readonly Source[], pattern: RegExp, allowed: Readonly<Record<string, string>> = {}): string[] {
  const found = of.flatMap(({ file, lines }) =>
    lines.flatMap((line, index) =>
      pattern.test(line.replace(/^\s*(\/\/|\*|\/\*).*/, '')) ? [`${file}:${index + 1}`] : [],
    ),
  );
  const filesFound = new Set(found.map((place) => place.split(':')[0]!));
  // An unneeded allowance would hide the next violation.
  for (const file of Object.keys(allowed)) if (!filesFound.has(file)) found.push(`${file}: needs no allowance`);
  return found.filter((place) => !(place.split(':')[0]! in allowed));
}

/** The imports at the top of a file: package specifiers, and files with their path from the root. */
export function importsOf({ file, text }: Source): string[] {
  const [top = ''] = text.split(
    /^(?:export )?(?:async |declare )?(?:const|let|function|class|interface|type|try)\b/m,
    1,
  );
  const specifiers = [...top.matchAll(/(?:\bfrom|^import)\s+'([^']+)'/gm)].map((match) => match[1]!);
  return specifiers.map((specifier) => (specifier.startsWith('.') ? join(dirname(file), specifier) : specifier));
}

/** Whether a file imports only types from another. */
export function onlyTypes(source: Source, imported: string): boolean {
  const name = imported.startsWith('packages/') ? `[^']*/${imported.split('/').at(-1)}` : imported;
  const statements = source.text.match(new RegExp(`^import [^;]*'${name.replaceAll('.', '\\.')}';`, 'gm')) ?? [];
  return statements.every((statement) => statement.startsWith('import type '));
}
