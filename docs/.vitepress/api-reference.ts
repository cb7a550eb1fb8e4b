// The API reference in the site: the page that the service shows at /docs, from the built console (`npm run build:console`).
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './pages.ts';

const built = join(root, 'packages/console/dist');

/** Writes `reference/api.html`, and its files to the addresses that it names. */
export function copyReference(outDir: string): void {
  const file = join(built, 'reference.html');
  if (!existsSync(file)) throw new Error('The API reference is not built. Run `npm run build:console`.');
  const page = readFileSync(file, 'utf8')
    // Without a nonce the page knows that it is not in a service.
    .replace(/\s*<!--[^>]*-->\s*<meta property="csp-nonce"[^>]*>/, '')
    .replace(/\s*<meta name="robots"[^>]*>/, '');
  mkdirSync(join(outDir, 'reference'), { recursive: true });
  writeFileSync(join(outDir, 'reference/api.html'), page);
  mkdirSync(join(outDir, 'console/assets'), { recursive: true });
  for (const asset of globSync('assets/{reference,theme,scalar,icon}-*.{js,css,svg}', { cwd: built })) {
    copyFileSync(join(built, asset), join(outDir, 'console', asset));
  }
}
