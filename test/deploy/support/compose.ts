// Reads a Compose file, as far as ours go. It refuses what it does not know: there is no engine that would.
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

export interface Service {
  image?: string;
  build?: string | { context: string; target?: string };
  entrypoint?: string[];
  command?: string[];
  environment?: Record<string, string>;
  /** Short forms: `name:/path[:ro]`. */
  volumes?: string[];
  tmpfs?: string[];
  ports?: string[];
  configs?: { source: string; target: string }[];
  depends_on?: Record<string, { condition: keyof typeof conditions }>;
  healthcheck?: { test: string[]; interval?: string; timeout?: string; retries?: number };
  stop_grace_period?: string;
  read_only?: boolean;
}

export interface Compose {
  name: string;
  services: Record<string, Service>;
  volumes: Record<string, null>;
  configs: Record<string, { content: string }>;
}

const known = new Set(
  `image build entrypoint command environment volumes tmpfs ports configs depends_on healthcheck stop_grace_period read_only
   restart init cap_drop security_opt shm_size network_mode`.split(/\s+/),
);
/** Whether the other service needs a health check. */
const conditions = { service_started: false, service_healthy: true, service_completed_successfully: false };

/** `variables`: of the shell and of `.env`. */
export function readCompose(file: string, variables: Readonly<Record<string, string>> = {}): Compose {
  const read = parse(readFileSync(file, 'utf8')) as Partial<Compose> & Pick<Compose, 'name' | 'services'>;
  const compose: Compose = { ...read, volumes: read.volumes ?? {}, configs: read.configs ?? {} };
  for (const key of Object.keys(compose))
    refuseUnless(/^(name|services|volumes|configs|x-.*)$/.test(key), `a key ${key}`);
  for (const [name, service] of Object.entries(compose.services)) {
    for (const key of Object.keys(service)) refuseUnless(known.has(key), `a key ${key} in ${name}`);
    for (const volume of service.volumes ?? []) {
      const [source = ''] = volume.split(':');
      refuseUnless(source in compose.volumes, `the volume ${source} of ${name}`);
    }
    for (const { source } of service.configs ?? [])
      refuseUnless(source in compose.configs, `the config ${source} of ${name}`);
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      refuseUnless(other in compose.services, `the service ${other}, on which ${name} depends`);
      refuseUnless(condition in conditions, `a condition ${condition} in ${name}`);
      const { healthcheck, build } = compose.services[other]!;
      // Images that are built here have one of their own, which their tests run.
      if (conditions[condition]) refuseUnless(healthcheck ?? build, `a health check of ${other}`);
    }
  }
  return withVariables(compose, variables) as Compose;
}

function refuseUnless(isKnown: unknown, what: string): void {
  if (!isKnown) throw new Error(`The Compose file has no such thing, or it is not known here: ${what}`);
}

/** `$$` is a dollar, `${NAME:-default}` and `${NAME:?message}` a variable. */
function withVariables(value: unknown, variables: Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string') {
    return value.replaceAll(
      /\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}/g,
      (whole, name: string, kind: string, text: string) => {
        if (whole === '$$') return '$';
        const set = variables[name];
        if (set) return set;
        if (kind !== '-') throw new Error(`${name}: ${text ?? 'is not set'}`);
        return text;
      },
    );
  }
  if (Array.isArray(value)) return value.map((one) => withVariables(one, variables));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withVariables(one, variables)]));
}

/** Folders of this machine by their path in the service. `tmpfs` other than `/tmp` is a folder of its own. */
export function mountsOf(service: Service, folderOf: (volume: string) => string, ownFolder: (path: string) => string) {
  const pathsOf = (mounts: string[] = []) => mounts.map((mount) => mount.split(':') as [string, string]);
  const volumes = pathsOf(service.volumes).map(([volume, path]) => [path, folderOf(volume)]);
  const own = pathsOf(service.tmpfs).map(([path]) => [path, ownFolder(path)]);
  return Object.fromEntries([...volumes, ...own.filter(([path]) => path !== '/tmp')]) as Record<string, string>;
}
