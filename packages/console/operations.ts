// A Vite plugin: `import operations from 'virtual:operations'` is what the palette needs of the contract, which itself is too large for
// a page.
import { routes } from '@signalbox/contract';
import type { Plugin } from 'vite';

const ID = 'virtual:operations';

export function apiOperations(): Plugin {
  return {
    name: 'api-operations',
    resolveId: (id) => (id === ID ? `\0${ID}` : undefined),
    load(id) {
      if (id !== `\0${ID}`) return undefined;
      const operations = Object.entries(routes).map(([name, { summary, method, path }]) => [
        name,
        summary,
        `${method} /api/v1${path}`,
      ]);
      return `export default ${JSON.stringify(operations)}`;
    },
  };
}
