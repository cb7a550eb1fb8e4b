// The command, on a Node that can run it. It must itself load on every Node from 20 on.
import { fileURLToPath } from 'node:url';
import { isSuitable, runOnNewerNode } from './newer-node.ts';

const main = new URL('./main.ts', import.meta.url);
const preload = new URL('./with-launcher.ts', import.meta.url);
if (isSuitable(process.versions.node)) await import(main.href);
else await runOnNewerNode(fileURLToPath(main), process.argv.slice(2), preload);
