// The demo: `npm run demo`, and `npm run demo -- --help` for its options.
//
// It needs only this repository, and calls the service through the TypeScript client. The code to copy is in scenarios/, one
// file for each, in follow.ts (follows a session) and in person.ts (resolves approvals).
import { help, type Options, readOptions, UsageError } from './options.ts';
import { report } from './report.ts';
import { scenarios } from './scenarios.ts';
import { openShop } from './shop.ts';
import { cleanUp, setStage, type Undo } from './stage.ts';
import { heading, line, row, styled } from './terminal.ts';

// The terminal sends Ctrl-C to every process, and npm then forwards it to its child a second time.
const SAME_INTERRUPT_MS = 500;

class Interrupted extends Error {}

/** Runs the demo and cleans up after it, however it ends. */
async function run(options: Options, interrupt: AbortController): Promise<void> {
  const { signal } = interrupt;
  const scenario = scenarios[options.scenario];
  const undo: Undo = [];
  try {
    heading(`Signalbox demo: ${scenario.shows}`);
    const shop = await openShop();
    undo.push(() => shop.close());
    const service = options.service ?? (await startOwn(shop.url, options, undo));
    row('service', options.service ? service.url : `${service.url}, with its own PostgreSQL`);
    signal.throwIfAborted();
    const person = { preset: options.preset, signal, onInterrupt: () => interrupt.abort(new Interrupted()) };
    const stage = await setStage(service, shop, options, person, undo);
    const { status, error } = await scenario.play(stage);
    await report(stage);
    if (status !== 'completed')
      throw new Error(`The session ended as ${status}: ${error?.message ?? 'no reason given'}`);
  } finally {
    await cleanUp(undo);
  }
  line(`\n${styled('green', 'Done.')} Everything the demo created has been deleted.\n`);
}

async function startOwn(shopUrl: string, { model }: Options, undo: Undo) {
  const reachable = [shopUrl, ...(model ? [model.baseUrl] : [])].map((url) => new URL(url).host);
  // The whole service, which a demo on another one does without.
  const { startDemoService } = await import('./service.ts');
  const service = await startDemoService(reachable);
  undo.push(() => service.stop());
  return service;
}

function untilInterrupted(): AbortController {
  const interrupt = new AbortController();
  let first: number | undefined;
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      const now = performance.now();
      first ??= now;
      if (now - first > SAME_INTERRUPT_MS) process.exit(130);
      interrupt.abort(new Interrupted());
    });
  }
  return interrupt;
}

try {
  const options = readOptions(process.argv.slice(2), process.env);
  if (options === 'help') process.stdout.write(help);
  else await run(options, untilInterrupted());
} catch (error) {
  if (error instanceof Interrupted) {
    line('\nStopped. Everything the demo created has been deleted.');
    process.exitCode = 130;
  } else {
    process.stderr.write(`\ndemo: ${(error as Error).message}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}
