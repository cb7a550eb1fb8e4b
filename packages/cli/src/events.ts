// `signalbox events verify`: verifies the chain of the event log, on a service or in an exported file.
import { createReadStream } from 'node:fs';
import { type EventCheckpoint, type EventVerification, verifyEvents } from '@signalbox/client';
import { serviceAt } from './service.ts';
import { columns, FileError, parseOptions, UsageError } from './usage.ts';

const help = `Verifies the event log: no record was changed, removed, duplicated or inserted.

  SIGNALBOX_API_KEY=sbk_… npx signalbox events verify --url https://signalbox.example.com
  npx signalbox events verify --file events.jsonl

The exit status is 0 if the log is intact. Otherwise it is 1, and the first wrong record is printed.

${columns([
  ['--url URL, SIGNALBOX_URL', 'the service (http://127.0.0.1:4500); the key in SIGNALBOX_API_KEY needs read'],
  ['--file FILE', 'verify an export (GET /api/v1/events/export) instead; - is standard input'],
  ['--checkpoint SEQUENCE:HASH', 'a record that must still be in the log, as printed by an earlier verification'],
  ['--json', 'print the result as JSON'],
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
      ? await serviceAt(values.url, 'events verify', ' or use --file').events.verify({ checkpoint })
      : await verifyEvents(linesOf(values.file), { checkpoint });
  if (!found.ok) process.exitCode = 1;
  if (values.json) process.stdout.write(`${JSON.stringify(found)}\n`);
  else if (found.ok) process.stdout.write(praise(found));
  else process.stderr.write(`signalbox: ${complaint(found, values.file)}\n`);
}

function checkpointIn(text: string): EventCheckpoint {
  const [, sequence, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (hash === undefined) {
    const problem = 'events verify: --checkpoint must be SEQUENCE:HASH, with a hash of 64 lowercase hexadecimal digits';
    throw new UsageError(problem, 'events verify --help');
  }
  return { sequence: Number(sequence), hash };
}

async function* linesOf(file: string): AsyncGenerator<string> {
  let rest = '';
  try {
    const input = (file === '-' ? process.stdin : createReadStream(file)).setEncoding('utf8');
    for await (const piece of input as AsyncIterable<string>) {
      // Only at line feeds: node:readline would also split at U+2028, which can occur in a record's text.
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
  return `The log is intact: ${records}, ${range}.\nCheckpoint: ${last.sequence}:${last.hash}\n`;
}

function complaint(
  { count, eventId, problem, detail }: Extract<EventVerification, { ok: false }>,
  file?: string,
): string {
  const place = file === undefined || problem === 'cut_short' ? '' : `line ${count + 1} of ${file}: `;
  const hints: Partial<Record<typeof problem, string>> = {
    not_a_record: ' Only an export with format=jsonl can be verified.',
    records_missing: ' An export with filters is not a complete chain.',
  };
  const hint = file === undefined ? '' : (hints[problem] ?? '');
  return `${place}${problem}: ${detail}${eventId ? ` (${eventId})` : ''}${hint} The ${count} records before it are intact.`;
}
