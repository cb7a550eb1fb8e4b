// Validates a value against a schema whose patterns may take longer than anyone waits: schema-check.ts ends this worker.
import { fieldErrors } from '@signalbox/contract/check';

addEventListener('message', ({ data }: MessageEvent<{ id: number; schema: object; value: unknown }>) => {
  const { id, schema, value } = data;
  try {
    postMessage({ id, errors: fieldErrors(schema, value) });
  } catch {
    postMessage({ id, errors: [{ path: '', message: 'can’t be checked against this schema' }] });
  }
});
