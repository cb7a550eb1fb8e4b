// A registry of npm with the packages of the workspace, as they would be published. It refers to the registry of this machine for all
// others.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { buildPackage } from '../../../scripts/build-package.ts';
import { npm, packFolders } from '../../../scripts/pack.ts';
import { packages, readManifest } from '../../../scripts/packages.ts';

export interface Registry {
  /** What makes npm use it. */
  env: Readonly<Record<string, string>>;
  version: string;
  close(): Promise<void>;
}

/** `scratch` is an empty folder. */
export async function startRegistry(scratch: string): Promise<Registry> {
  const upstream = npm(['config', 'get', 'registry']).trim().replace(/\/$/, '');
  const folders = packages().map(({ source, folder }) => {
    buildPackage(source, join(scratch, folder));
    return join(scratch, folder);
  });
  const tarballs = join(scratch, 'tarballs');
  mkdirSync(tarballs);
  const packed = packFolders(folders, tarballs);

  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo;
    const path = decodeURIComponent(request.url ?? '').slice(1);
    const file = packed.find((one) => basename(one.file) === path)?.file;
    if (file) return response.end(readFileSync(file));
    const index = packed.findIndex(({ name }) => name === path);
    if (index === -1) return response.writeHead(307, { location: upstream + request.url }).end();
    const { name, version, file: tarball } = packed[index]!;
    const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
    const dist = { tarball: `http://127.0.0.1:${port}/${basename(tarball)}`, integrity };
    const versions = { [version]: { ...readManifest(folders[index]!), dist } };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    env: { npm_config_registry: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` },
    version: packed[0]!.version,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
