// Checks values against schemas in a worker, which is ended if a pattern takes too long.
import type { FieldError } from '@signalbox/contract';
import type { JsonSchema } from './schema-at.ts';

type Errors = readonly FieldError[];

/** Includes the time to load the worker. */
const MOST_MS = 5_000;

let worker: Worker | undefined;
let last = 0;
const waiting = new Map<number, (errors: Errors) => void>();

/** The errors; none if there was not enough time, because the service checks again. */
export function schemaErrors(schema: JsonSchema, value: unknown): Promise<Errors> {
  worker ??= start();
  last += 1;
  const id = last;
  const late = setTimeout(end, MOST_MS);
  // Schemas of the contract have more than JSON, which can’t be posted.
  worker.postMessage({ id, schema: JSON.parse(JSON.stringify(schema)), value });
  return new Promise((resolve) => {
    waiting.set(id, (errors) => {
      clearTimeout(late);
      waiting.delete(id);
      resolve(errors);
    });
  });
}

function start(): Worker {
  const started = new Worker(new URL('./schema-worker.ts', import.meta.url), { type: 'module' });
  started.addEventListener('message', ({ data }: MessageEvent<{ id: number; errors: Errors }>) => {
    waiting.get(data.id)?.(data.errors);
  });
  started.addEventListener('error', end);
  return started;
}

function end(): void {
  worker?.terminate();
  worker = undefined;
  for (const resolve of [...waiting.values()]) resolve([]);
}
