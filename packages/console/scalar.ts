// A Vite plugin: `import url from 'virtual:scalar'` is the URL of Scalar's script, copied from its Fastify plugin. That package has
// the script and eight small dependencies (24 MB installed); the one made for bundlers has 320 (287 MB).
import scalar from '@scalar/fastify-api-reference';
import Fastify from 'fastify';
import type { Plugin } from 'vite';

const ID = 'virtual:scalar';

export function scalarScript(): Plugin {
  return {
    name: 'scalar-script',
    resolveId: (id) => (id === ID ? `\0${ID}` : undefined),
    async load(id) {
      if (id !== `\0${ID}`) return undefined;
      const reference = this.emitFile({ type: 'asset', name: 'scalar.js', source: await readScript() });
      return `export default import.meta.ROLLUP_FILE_URL_${reference}`;
    },
  };
}

/** The script as the plugin serves it: it is not exported. */
async function readScript(): Promise<string> {
  const app = Fastify();
  await app.register(scalar, { routePrefix: '/', configuration: { content: '{}' } });
  const { statusCode, body } = await app.inject('/js/scalar.js');
  await app.close();
  if (statusCode !== 200) throw new Error(`Scalar's script: ${statusCode}`);
  return body.replace(/\n\/\/# sourceMappingURL=.*$/, '');
}
