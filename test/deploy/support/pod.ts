// Runs the container of a Deployment as a pod would, with a Secret in the form of files.
import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../../packages/server/test/support/free-port.ts';
import { createVolume, type Running, startContainer } from './container.ts';
import { type Image, isRoot } from './image.ts';

export interface Deployment {
  metadata: { name: string };
  spec: { template: { spec: { containers: [PodContainer]; volumes: Volume[]; securityContext: { fsGroup: number } } } };
}
type Probe = { httpGet: { path: string; port: string } };
interface PodContainer extends Record<'startupProbe' | 'livenessProbe' | 'readinessProbe', Probe> {
  env: { name: string; value: string }[];
  ports: { name: string; containerPort: number }[];
  volumeMounts: { name: string; mountPath: string }[];
}
interface Volume {
  name: string;
  secret?: { secretName: string; items: { key: string; path: string }[] };
}

export interface Secret {
  metadata: { name: string };
  data: Record<string, string>;
}

export interface Pod {
  running: Running;
  /** Here, by the name of the port. */
  urls: Record<string, string>;
  /** The addresses that the kubelet asks. */
  probes: string[];
}

/** `portVariables` by the number of the port in the container. */
export async function startPod(
  { metadata, spec }: Deployment,
  secret: Secret,
  image: Image,
  scratch: string,
  portVariables: Readonly<Record<number, string>>,
): Promise<Pod> {
  const { containers, volumes, securityContext } = spec.template.spec;
  const [container] = containers;
  const own = join(scratch, metadata.name);
  const mounts: Record<string, string> = {};
  for (const { name, mountPath } of container.volumeMounts.filter((mount) => mount.mountPath !== '/tmp')) {
    const items = volumes.find((volume) => volume.name === name)?.secret;
    mounts[mountPath] = join(own, name);
    if (!items) createVolume(join(own, name), image);
    else if (items.secretName !== secret.metadata.name) throw new Error(`There is no Secret ${items.secretName}`);
    else mkdirSync(join(own, name), { recursive: true });
    for (const { key, path } of items?.items ?? []) {
      const file = join(own, name, path);
      writeFileSync(file, Buffer.from(secret.data[key]!, 'base64'), { mode: 0o440 });
      if (isRoot) chownSync(file, 0, securityContext.fsGroup);
    }
  }
  const env = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
  const urls: Record<string, string> = {};
  for (const { name, containerPort } of container.ports) {
    const port = await freePort();
    env[portVariables[containerPort]!] = `${port}`;
    urls[name] = `http://127.0.0.1:${port}`;
  }
  const { startupProbe, livenessProbe, readinessProbe } = container;
  const probes = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => urls[httpGet.port]! + httpGet.path);
  return { running: startContainer({ image, env, mounts }), urls, probes };
}
