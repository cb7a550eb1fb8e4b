// A node in its own process, for tests with several nodes: `node node-process.ts`, configured by the environment. Prints its URL, and
// nothing else if the log is silent. Exits when its standard input ends, so that it does not outlive the test.
import { readConfig, startService } from '../../src/main.ts';

const service = await startService(readConfig({ port: '0' }));
process.stdin.resume().once('end', () => void service.stop().then(() => process.exit()));
process.stdout.write(`${service.url}\n`);
