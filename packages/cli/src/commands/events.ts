// `signalbox events …`: verifies the chain of the event log, on a service or in an exported file.
import { createReadStream } from 'node:fs';
import { type EventCheckpoint, type EventVerification, verifyEvents } from '@signalbox/client';
import { CommandError, command, UsageError } from '../command.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import type { Terminal } from '../terminal.ts';

const verify = command({
  name: 'verify',
  summary: 'Verify that no record of the event log was changed, removed, duplicated or inserted',
  details: 'The exit status is 0 if the log is intact. Otherwise it is 1, and the first wrong record is printed.',
  options: {
    file: { type: 'string', value: 'FILE', about: 'verify an export (format jsonl) instead; - is standard input' },
    checkpoint: {
      type: 'string',
      value: 'SEQUENCE:HASH',
      about: 'a record that must still be in the log, as printed by an earlier verification',
    },
    ...serviceOptions,
  },
  examples: [
    ['events verify --url https://signalbox.example.com', 'verify the log of a service'],
    ['events verify --file events.jsonl', 'verify an export'],
  ],
  needs: 'events:read (permission read), unless it verifies a file',
  operations: ['exportEvents'],
  async run(input) {
    const { values, terminal } = input;
    const checkpoint = values.checkpoint === undefined ? undefined : checkpointIn(values.checkpoint);
    const found =
      values.file === undefined
        ? await serviceOf(input, ' or use --file').events.verify({ checkpoint })
        : await verifyEvents(linesOf(values.file, terminal), { checkpoint });
    if (values.json) await terminal.stdout.write(`${JSON.stringify(found)}\n`);
    else if (found.ok) await terminal.stdout.write(praise(found));
    else await terminal.stderr.write(`signalbox: ${complaint(found, values.file)}\n`);
    return found.ok ? 0 : 1;
  },
});

export const commands = [verify];

function checkpointIn(text: string): EventCheckpoint {
  const [, sequence, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (hash === undefined) {
    const problem = 'events verify: --checkpoint must be SEQUENCE:HASH, with a hash of 64 lowercase hexadecimal digits';
    throw new UsageError(problem, 'events verify --help');
  }
  return { sequence: Number(sequence), hash };
}

async function* linesOf(file: string, { stdin }: Terminal): AsyncGenerator<string> {
  let rest = '';
  try {
    const input = (file === '-' ? stdin : createReadStream(file)).setEncoding('utf8');
    for await (const piece of input as AsyncIterable<string>) {
      // Only at line feeds: node:readline would also split at U+2028, which can occur in a record's text.
      const lines = (rest + piece).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } catch (error) {
    throw new CommandError(`--file ${file} can't be read: ${(error as Error).message}`);
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
