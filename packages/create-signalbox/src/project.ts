// What a new project consists of: the files of template/, the page and the backend of examples/chat, and what depends on the choices.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { providers, type Server, scripted, servers } from './providers.ts';

export interface ProjectOptions {
  /** A name that npm accepts: `nameOf`. */
  name: string;
  /** A name from `providers` or `servers`, or `scripted`. */
  provider: string;
  /** The model of a server. */
  model?: string;
  /** The version of the packages of Signalbox. */
  version: string;
  /** Where their tarballs are, by name; they are copied into the project. Without them, they are installed from npm. */
  tarballs?: ReadonlyMap<string, string> | undefined;
}

const folderOfPackage = dirname(createRequire(import.meta.url).resolve('create-signalbox/package.json'));
const template = join(folderOfPackage, 'template');
/** The example is part of the published package; in the repository it is used where it is. */
const published = join(folderOfPackage, 'chat');
const chat = existsSync(published) ? published : join(folderOfPackage, '../../examples/chat');
const fromChat = ['index.html', 'vite.config.ts', 'agent.ts', 'receiver.ts', 'server.ts', 'store-agent.ts', 'src'];

/** The name of the npm package in a folder: the folder's own name, as far as npm accepts it. */
export function nameOf(folder: string): string {
  const name = folder
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[._-]+|-+$/g, '')
    .slice(0, 214);
  return name || 'signalbox-app';
}

/** The name for Compose, which allows fewer characters. */
function composeNameOf(name: string): string {
  return name.replaceAll('.', '-');
}

/** What is in the way of a project in this folder. A repository without files of its own is empty. */
export function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter((name) => !['.git', '.DS_Store', '.idea', '.vscode'].includes(name));
}

const INSTALL_TARBALLS = 'COPY packages /packages\nRUN npm install --global /packages/*.tgz';

const withoutKeys = (object: Record<string, string>, keys: object) =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !(key in keys)));

/** The file with the model of a server. */
function modelOf({ baseUrl, key }: Server, model: string): string {
  const text = (value: string) => `'${value.replace(/['\\]/g, '\\$&')}'`;
  const fields = [
    ['provider', text('openai-compatible')],
    ['model', text(model)],
    ['baseUrl', text(baseUrl)],
    ...(key ? [['apiKeySecret', text(key)]] : []),
  ];
  const lines = fields.map(([field, value]) => `  ${field}: ${value},\n`);
  return `import type { Model } from '@signalbox/client';\n\nexport const model: Model = {\n${lines.join('')}};\n`;
}

function aboutModel({ label, baseUrl, key }: Server, model: string): string {
  const { host, hostname } = new URL(baseUrl);
  const where = `Its model is \`${model}\` of ${label}`;
  if (hostname !== 'localhost') {
    return `${where}. \`npm run dev\` stores the key \`${key}\` of \`.env\` as a secret that is sent only to ${host};
in containers, set it with \`signalbox secrets set production ${key} --allowed-host ${host}\`.`;
  }
  const secret = key
    ? `, and the key of \`.env\` as a secret: \`signalbox secrets set production ${key} --allowed-host …\``
    : '';
  return `${where} at <${baseUrl}>. In containers, enter the address of that machine in
\`model.ts\`, and its host in \`SIGNALBOX_EGRESS_ALLOW\` of \`compose.yaml\`${secret}.`;
}

/** Writes the project. The folder has to be empty, or not to exist yet. */
export function writeProject(folder: string, { name, provider, model = '', version, tarballs }: ProjectOptions): void {
  const chosen = providers[provider];
  const server = servers[provider];
  if (!chosen && !server && provider !== scripted) throw new Error(`Unknown provider: ${provider}`);
  const example = JSON.parse(readFileSync(join(chat, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  const { scripts, devDependencies } = JSON.parse(readFileSync(join(template, '_package.json'), 'utf8')) as {
    scripts: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  const own = (dependencies: Record<string, string>) =>
    Object.fromEntries(
      Object.entries(dependencies)
        .map(([dependency, range]): [string, string] => [
          dependency,
          dependency.startsWith('@signalbox/') ? addressOf(dependency) : range,
        ])
        .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    );

  // npm looks for a dependency of a tarball in the registry, unless the project itself has it.
  const ofTarballs = Object.fromEntries([...(tarballs?.keys() ?? [])].map((own) => [own, addressOf(own)]));

  mkdirSync(folder, { recursive: true });
  for (const file of tarballs?.values() ?? []) cpSync(file, join(folder, 'packages', basename(file)));
  for (const file of fromChat) cpSync(join(chat, file), join(folder, file), { recursive: true });
  for (const file of readdirSync(template)) {
    if (file === '_package.json') continue;
    const text = readFileSync(join(template, file), 'utf8');
    write(file.replace(/^_/, '.'), fill(text));
  }
  if (chosen) write('model.ts', `export const model = '${chosen.model}';\n`);
  else if (server) write('model.ts', modelOf(server, model));
  else cpSync(join(chat, 'model.ts'), join(folder, 'model.ts'));
  // It gets secrets, so only its owner may read it.
  const key = (chosen ?? server)?.key;
  const variables = `${key ? `${key}=\n` : ''}${chosen ? `SIGNALBOX_PROVIDER_KEYS=${provider}\n` : ''}`;
  writeFileSync(join(folder, '.env'), variables, { mode: 0o600 });
  const manifest = {
    name,
    version: '0.0.0',
    private: true,
    type: 'module',
    scripts,
    dependencies: own(example.dependencies),
    devDependencies: own({
      ...example.devDependencies,
      ...devDependencies,
      ...withoutKeys(ofTarballs, example.dependencies),
      signalbox: addressOf('signalbox'),
    }),
  };
  write('package.json', `${JSON.stringify(manifest, null, 2)}\n`);

  function addressOf(own: string): string {
    const tarball = tarballs?.get(own);
    return tarball === undefined ? version : `file:packages/${basename(tarball)}`;
  }

  function write(file: string, text: string): void {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }

  function fill(text: string): string {
    const about = chosen
      ? `Its model is \`${chosen.model}\`, whose key \`${chosen.key}\` is in \`.env\`.`
      : server
        ? aboutModel(server, model)
        : 'Its model follows a script and needs no key; to use a real one, change `model.ts`.';
    return text
      .replaceAll('{{name}}', name)
      .replaceAll('{{composeName}}', composeNameOf(name))
      .replaceAll('{{install}}', tarballs ? INSTALL_TARBALLS : `RUN npm install --global signalbox@${version}`)
      .replaceAll('{{copyPackages}}\n', tarballs ? 'COPY packages ./packages\n' : '')
      .replaceAll('{{model}}', about)
      .replaceAll('      {{providerKey}}\n', chosen ? `      ${chosen.key}: \${${chosen.key}:?set it in .env}\n` : '')
      .replaceAll('{{provider}}', chosen ? provider : '');
  }
}
