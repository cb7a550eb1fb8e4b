// The files that a builder gets: what the .dockerignore of a folder leaves.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';

interface Rule {
  isException: boolean;
  /** The path before its first wildcard. */
  start: string;
  pattern: RegExp;
}

/** The last rule that matches a path, or a folder above it, decides. */
function readDockerignore(text: string): Rule[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const path = line
        .replace(/^!/, '')
        .replace(/^\.?\//, '')
        .replace(/\/$/, '');
      const [start = ''] = path.split(/[*?]/, 1);
      const source = path
        .replaceAll(/[.+^${}()|\\]/g, '\\$&')
        .replaceAll(/\*\*\/|\*\*|\*|\?/g, (part) => ({ '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*' })[part] ?? '[^/]');
      return { isException: line.startsWith('!'), start, pattern: new RegExp(`^${source}(?:/|$)`) };
    });
}

export function copyContext(folder: string, to: string): void {
  const ignoreFile = join(folder, '.dockerignore');
  const rules = existsSync(ignoreFile) ? readDockerignore(readFileSync(ignoreFile, 'utf8')) : [];
  copy('');

  function copy(parent: string): void {
    for (const entry of readdirSync(join(folder, parent), { withFileTypes: true })) {
      const path = parent === '' ? entry.name : `${parent}/${entry.name}`;
      const last = rules.findLastIndex(({ pattern }) => pattern.test(path));
      const isLeft = last === -1 || rules[last]!.isException;
      if (entry.isDirectory()) {
        const mayHaveExceptions = rules
          .slice(last + 1)
          .some(({ isException, start }) => isException && (start.startsWith(`${path}/`) || path.startsWith(start)));
        if (isLeft || mayHaveExceptions) copy(path);
      } else if (isLeft) {
        mkdirSync(dirname(join(to, path)), { recursive: true });
        if (entry.isSymbolicLink()) symlinkSync(readlinkSync(join(folder, path)), join(to, path));
        else copyFileSync(join(folder, path), join(to, path));
      }
    }
  }
}
