// A worker in a process of its own, for tests that kill it. It prints `effect` each time its tool has an effect.
import { Signalbox } from '@signalbox/client';
import { frameworks } from './frameworks.ts';

const { SIGNALBOX_URL = '', SIGNALBOX_API_KEY = '', MODEL_URL = '', QUEUE = '', FRAMEWORK, HANG } = process.env;
const client = new Signalbox({ apiKey: SIGNALBOX_API_KEY, baseUrl: SIGNALBOX_URL });
const framework = frameworks.find(({ name }) => name === FRAMEWORK);
if (!framework) throw new Error(`No framework ${FRAMEWORK}`);

await client.workers.run({
  queue: QUEUE,
  onTurn: framework.onTurn(MODEL_URL),
  tools: {
    pay: async () => {
      console.log('effect');
      if (HANG) await new Promise(() => setInterval(() => {}, 60_000));
      return 'paid';
    },
  },
});
