// Bundles the code of a package: loading a thousand small files took a third of the processor time of a start.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync, type Metafile } from 'esbuild';
import { type Manifest, readManifest, root } from './packages.ts';

/** The file with the licenses of what others wrote and is in the bundles. */
export const LICENSES = 'THIRD-PARTY-LICENSES.txt';

/**
 * Writes a file for each entry, and in `chunks` what they share and what is loaded later, with source maps that contain the sources.
 * Packages that are not inlined are imported as before. `source` is the package's folder, `folder` that of its build. Throws if a
 * package would be inlined that `bundle.inline` does not name.
 */
export function bundlePackage(source: string, folder: string, manifest: Manifest): void {
  const { entries, inline } = manifest.bundle!;
  const exported = Object.values(manifest.exports).filter((file) => file.endsWith('.ts'));
  const { metafile } = buildSync({
    absWorkingDir: root,
    entryPoints: [...exported, ...entries].map((file) => join(source, file)),
    external: Object.keys(manifest.dependencies ?? {}).filter((name) => !inline.includes(name)),
    outbase: join(source, 'src'),
    outdir: folder,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'es2024',
    sourcemap: true,
    legalComments: 'none',
    metafile: true,
    logLevel: 'silent',
  });
  const others = foldersOfOthers(metafile).map((path) => ({ path, ...readManifest(join(root, path)) }));
  const unnamed = others.filter(({ name }) => !inline.includes(name));
  if (unnamed.length > 0) throw new Error(`${unnamed[0]!.path} would be in the bundles of ${manifest.name}`);
  if (others.length === 0) return;
  writeFileSync(join(folder, LICENSES), others.map(licenseOf).join(`\n${'-'.repeat(80)}\n\n`));
}

/** The folders in node_modules that have code in the bundles, from the root of the workspace. */
function foldersOfOthers({ outputs }: Metafile): string[] {
  const files = Object.values(outputs)
    .flatMap(({ inputs }) => Object.entries(inputs))
    .flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : []));
  const folders = files.flatMap((file) => /^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  return [...new Set(folders)].toSorted();
}

function licenseOf({ path, name, version, license }: Manifest & { path: string }): string {
  const file = readdirSync(join(root, path)).find((one) => /^licen[cs]e(\.\w+)?$/i.test(one));
  if (file === undefined) throw new Error(`${name} has no license to copy into ${LICENSES}`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(root, path, file), 'utf8').trim()}\n`;
}
