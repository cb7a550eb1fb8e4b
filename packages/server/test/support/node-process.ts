// A node in a process of its own, for tests of several: `node node-process.ts`, configured by the environment. Prints its url, and
// nothing else where the log is silent; ends with its standard input, so that it does not outlive the test.
import { readConfig, startService } from '../../src/main.ts';

const service = await startService(readConfig({ port: '0' }));
process.stdin.resume().once('end', () => void service.stop().then(() => process.exit()));
process.stdout.write(`${service.url}\n`);
