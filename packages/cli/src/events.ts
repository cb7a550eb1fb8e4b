// `signalbox events verify`: checks the chain of the event log, on a service or in an exported file.
import { createReadStream } from 'node:fs';
import { type EventCheckpoint, type EventVerification, verifyEvents } from '@signalbox/client';
import { serviceAt } from './service.ts';
import { columns, FileError, parseOptions, UsageError } from './usage.ts';

const help = `Checks that the event log is whole: no record changed, missing, doubled or put in.

  SIGNALBOX_API_KEY=sbk_… npx signalbox events verify --url https://signalbox.example.com
  npx signalbox events verify --file events.jsonl

It ends with 0 where the chain holds, else with 1 and the first record that is wrong.

${columns([
  ['--url URL, SIGNALBOX_URL', 'the service to ask (http://127.0.0.1:4500); the key in SIGNALBOX_API_KEY needs read'],
  ['--file FILE', 'a file of GET /api/v1/events/export instead; - is the standard input'],
  ['--checkpoint SEQUENCE:HASH', 'a record that must still be there, as an earlier verification printed it'],
  ['--json', 'prints what was found as JSON'],
])}`;

export async function verify(args: string[]): Promise<void> {
  const values = parseOptions('events verify', args, {
    url: { type: 'string' },
    file: { type: 'string' },
    checkpoint: { type: 'string' },
    json: { type: 'boolean' },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const checkpoint = values.checkpoint === undefined ? undefined : checkpointIn(values.checkpoint);
  const found =
    values.file === undefined
      ? await serviceAt(values.url, 'events verify', ', or give a --file').events.verify({ checkpoint })
      : await verifyEvents(linesOf(values.file), { checkpoint });
  if (!found.ok) process.exitCode = 1;
  if (values.json) process.stdout.write(`${JSON.stringify(found)}\n`);
  else if (found.ok) process.stdout.write(praise(found));
  else process.stderr.write(`signalbox: ${complaint(found, values.file)}\n`);
}

function checkpointIn(text: string): EventCheckpoint {
  const [, sequence, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (hash === undefined) {
    const problem = 'events verify: --checkpoint is SEQUENCE:HASH, the hash in 64 lowercase hexadecimal digits';
    throw new UsageError(problem, 'events verify --help');
  }
  return { sequence: Number(sequence), hash };
}

async function* linesOf(file: string): AsyncGenerator<string> {
  let rest = '';
  try {
    const input = (file === '-' ? process.stdin : createReadStream(file)).setEncoding('utf8');
    for await (const piece of input as AsyncIterable<string>) {
      // By the line feed alone: node:readline would end a line at U+2028 too, which may stand in a record's text.
      const lines = (rest + piece).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } catch (error) {
    throw new FileError(`--file ${file} can't be read: ${(error as Error).message}`);
  }
  if (rest !== '') yield rest;
}

function praise({ count, first, last }: Extract<EventVerification, { ok: true }>): string {
  if (!first || !last) return 'There are no records.\n';
  const range = first.sequence === last.sequence ? `${first.sequence}` : `${first.sequence} to ${last.sequence}`;
  const records = count === 1 ? '1 record' : `${count} records`;
  return `The chain holds: ${records}, ${range}.\nCheckpoint: ${last.sequence}:${last.hash}\n`;
}

function complaint(
  { count, eventId, problem, detail }: Extract<EventVerification, { ok: false }>,
  file?: string,
): string {
  const place = file === undefined || problem === 'cut_short' ? '' : `line ${count + 1} of ${file}: `;
  const hints: Partial<Record<typeof problem, string>> = {
    not_a_record: ' Only an export with format=jsonl can be verified.',
    records_missing: ' An export with filters is not a whole chain.',
  };
  const hint = file === undefined ? '' : (hints[problem] ?? '');
  return `${place}${problem}: ${detail}${eventId ? ` (${eventId})` : ''}${hint} ${count} before it are right.`;
}
