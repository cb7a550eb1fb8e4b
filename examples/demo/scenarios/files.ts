// Files in both directions: a photo in the customer's message, and a report that a tool of this program returns. Both are read again
// and compared with what was sent.
import { createHash } from 'node:crypto';
import type { Session } from '@signalbox/client';
import type { Stage } from '../stage.ts';
import { row } from '../terminal.ts';

/** A PNG of one pixel. */
const photo = Uint8Array.from(
  Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
    'base64',
  ),
);
const report = new TextEncoder().encode('order,damage\n1042,a dented corner\n');

export async function files(stage: Stage): Promise<Session> {
  const { client, environment } = stage;
  const upload = async (bytes: Uint8Array<ArrayBuffer>, filename: string, mediaType: string) => {
    const onProgress = ({ sentBytes, totalBytes }: { sentBytes: number; totalBytes: number | null }) =>
      row('upload', `${filename}: ${sentBytes} of ${totalBytes} bytes`);
    const file = await client.files.upload(bytes, { environment, filename, mediaType, onProgress });
    row('file', `${file.fileId}, ${file.mediaType}`);
    return file.fileId;
  };
  const agent = await stage.createAgent({
    name: 'Claims desk',
    instructions: 'Look at the photo of the parcel, and write a report with write_report.',
    model: stage.model('claims', [
      { text: 'I write a report.', tokenDelayMs: 50, toolCalls: [{ name: 'write_report', input: { order: '1042' } }] },
      { text: 'The report is attached.', tokenDelayMs: 50 },
    ]),
    tools: [
      {
        type: 'client',
        name: 'write_report',
        description: 'Writes the report of a damaged parcel as a table.',
        inputSchema: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
      },
    ],
  });

  const sent = await upload(photo, 'parcel.png', 'image/png');
  const returned: string[] = [];
  const session = await stage.converse(
    agent,
    [
      { type: 'text', text: 'My parcel of order 1042 is damaged. Here is a photo.' },
      { type: 'file', fileId: sent },
    ],
    {
      async onToolCall({ toolCallId }, sessionId) {
        const fileId = await upload(report, 'report.csv', 'text/csv');
        returned.push(fileId);
        await client.sessions.sendToolResult(sessionId, { toolCallId, output: { type: 'file', fileId } });
      },
    },
  );
  for (const [fileId, bytes] of [[sent, photo] as const, ...returned.map((one) => [one, report] as const)]) {
    const content = new Uint8Array(await new Response(await client.files.content(fileId)).arrayBuffer());
    row('download', `${fileId}: ${sha256(content) === sha256(bytes) ? 'the same bytes' : 'OTHER BYTES'}`);
  }
  return session;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
