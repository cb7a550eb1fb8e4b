// An installation from a Compose file: programs of the images that were built, and a PostgreSQL in place of that of its image. All of
// them are on this machine, so each listens at a free port, and `service:port` in a text becomes an address here.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Postgres, startTemporaryPostgres } from '@signalbox/embedded-postgres';
import { ask } from '../../../packages/embedded-postgres/test/support/ask.ts';
import { freePort } from '../../../packages/server/test/support/free-port.ts';
import { type Compose, mountsOf } from './compose.ts';
import { type Container, createVolume, endContainer, type Running, startContainer } from './container.ts';
import { createLocate, type Image } from './image.ts';

/** A service whose image was built. */
export interface Built {
  image: Image;
  /** The port in its container, and the variable that sets it. */
  port: number;
  portVariable: string;
}

export interface Installation {
  start(service: string): Running;
  container(service: string): Container;
  /** The command of the health check in the file, without `CMD`. */
  healthCheck(service: string): string[];
  /** The address of a service here. */
  url(service: string): string;
  volume(name: string): string;
  here(text: string): string;
  startPostgres(service: string): Promise<void>;
  end(): Promise<void>;
}

/** `read` reads the file, as often as something is started: the variables may have changed. */
export async function createInstallation(
  read: () => Compose,
  built: Readonly<Record<string, Built>>,
  scratch: string,
): Promise<Installation> {
  const addresses = new Map<string, string>();
  const ports = new Map<string, number>();
  const running: Running[] = [];
  let postgres: Postgres | undefined;
  for (const [service, { port }] of Object.entries(built)) {
    const own = await freePort();
    ports.set(service, own);
    addresses.set(`${service}:${port}`, `127.0.0.1:${own}`);
    // As browsers reach it, through a port of the machine.
    if (read().services[service]!.ports) addresses.set(`localhost:${port}`, `localhost:${own}`);
  }

  const volume = (name: string) => {
    const folder = join(scratch, 'volumes', name);
    mkdirSync(folder, { recursive: true });
    return folder;
  };
  const here = (text: string) =>
    [...addresses].reduce(
      (replaced, [address, own]) => replaced.replaceAll(new RegExp(`(?<![\\w-])${address}\\b`, 'g'), own),
      text,
    );

  function container(name: string): Container {
    const { image, portVariable } = built[name]!;
    const service = read().services[name]!;
    const given = Object.entries(service.environment ?? {}).map(([variable, value]) => [
      variable,
      `${value}` in read().services ? '127.0.0.1' : here(`${value}`),
    ]);
    const mounts = mountsOf(service, volume, (path) => createVolume(join(scratch, 'own', name, path), image));
    return { image, env: { ...Object.fromEntries(given), [portVariable]: `${ports.get(name)}` }, mounts };
  }

  return {
    container,
    volume,
    here,
    url: (service) => `http://127.0.0.1:${ports.get(service)}`,
    start(service) {
      const started = startContainer(container(service));
      running.push(started);
      return started;
    },
    healthCheck(service) {
      const [kind, ...command] = read().services[service]!.healthcheck!.test;
      if (kind !== 'CMD') throw new Error(`The health check of ${service} is not a command`);
      return command.map((word) =>
        word.replaceAll(`127.0.0.1:${built[service]!.port}`, `127.0.0.1:${ports.get(service)}`),
      );
    },
    async startPostgres(name) {
      const service = read().services[name]!;
      const env = service.environment!;
      const settings = Object.fromEntries(
        (service.command ?? []).flatMap((word) => (word.includes('=') ? [word.split('=')] : [])),
      );
      const user = env.POSTGRES_USER!;
      postgres = await startTemporaryPostgres({ user, database: env.POSTGRES_DB ?? user, port: 0, settings });
      const locate = createLocate(
        { root: scratch },
        mountsOf(service, volume, () => scratch),
      );
      const password = env.POSTGRES_PASSWORD ?? readFileSync(locate(env.POSTGRES_PASSWORD_FILE!), 'utf8').trim();
      await ask(postgres.url, `alter role ${user} password '${password}'`);
      addresses.set(`${name}:5432`, new URL(postgres.tcpUrl!).host);
    },
    async end() {
      await Promise.all(running.map(endContainer));
      await postgres?.stop();
    },
  };
}
