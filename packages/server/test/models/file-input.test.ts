// Files in requests to models, over the wire: each provider gets images and PDF files in its own format, and a description of every file
// that its model does not get.
import { Readable } from 'node:stream';
import type { FilePart, Model } from '@signalbox/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemSource } from '../../src/events/record.ts';
import { createFile } from '../../src/files/create.ts';
import { deleteFile } from '../../src/files/files.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';
import type { ModelCall, ModelEntry, ModelEvent, ModelFailure } from '../../src/models/model/model.ts';
import { createModels } from '../../src/models/models.ts';
import { anthropicMessages } from '../support/anthropic-wire.ts';
import { noise, pdf, png } from '../support/files.ts';
import { generateContent } from '../support/google-wire.ts';
import { chatCompletions } from '../support/openai-server.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { type ProviderServer, raw, refuse, startProviderServer, type Wire } from '../support/provider-server.ts';
import { responses } from '../support/responses-wire.ts';
import { startStrictServer } from '../support/server-rules/strict-server.ts';

interface Format {
  provider: Model['provider'];
  model: string;
  wire: Wire;
  /** The messages of a request, without the instructions. */
  messages: string;
  /** The parts of a user's message. */
  parts(message: never): unknown[];
  text(text: unknown): object;
  image: object;
  pdf: object;
  /** What follows the call of a tool that returned the image. `text` is its result as text. */
  imageOfTool(call: string, text: unknown): unknown[];
}

const base64 = { png: png.toString('base64'), pdf: pdf.toString('base64') };
const ofContent = ({ content }: { content: unknown[] }) => content;

const anthropicImage = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64.png } };
const openaiImage = { type: 'input_image', image_url: `data:image/png;base64,${base64.png}` };
const chatImage = { type: 'image_url', image_url: { url: `data:image/png;base64,${base64.png}` } };
const googleImage = { inlineData: { mimeType: 'image/png', data: base64.png } };

const formats: Format[] = [
  {
    provider: 'openai',
    model: 'gpt-5',
    wire: responses,
    messages: 'input',
    parts: ofContent,
    text: (text) => ({ type: 'input_text', text }),
    image: openaiImage,
    pdf: { type: 'input_file', filename: 'order.pdf', file_data: `data:application/pdf;base64,${base64.pdf}` },
    imageOfTool: (call_id, text) => [
      { type: 'function_call_output', call_id, output: [{ type: 'input_text', text }, expect.anything(), openaiImage] },
    ],
  },
  {
    provider: 'anthropic',
    model: 'claude-sonnet-4-5',
    wire: anthropicMessages,
    messages: 'messages',
    parts: ofContent,
    text: (text) => ({ type: 'text', text }),
    image: anthropicImage,
    pdf: {
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: base64.pdf },
      title: 'order.pdf',
    },
    imageOfTool: (tool_use_id, text) => [
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id, content: [{ type: 'text', text }, expect.anything(), anthropicImage] },
        ],
      },
    ],
  },
  {
    provider: 'google',
    model: 'gemini-3-pro-preview',
    wire: generateContent,
    messages: 'contents',
    parts: ({ parts }: { parts: unknown[] }) => parts,
    text: (text) => ({ text }),
    image: googleImage,
    pdf: { inlineData: { mimeType: 'application/pdf', data: base64.pdf } },
    imageOfTool: (id) => [
      {
        role: 'user',
        parts: [{ functionResponse: expect.objectContaining({ id, name: 'look', parts: [googleImage] }) }],
      },
    ],
  },
  {
    provider: 'openai-compatible',
    model: 'small',
    wire: chatCompletions,
    messages: 'messages',
    // Several texts are one.
    parts: ({ content }: { content: unknown[] | string }) =>
      typeof content === 'string' ? content.split(/\n\n(?=\[file )/).map((text) => ({ type: 'text', text })) : content,
    text: (text) => ({ type: 'text', text }),
    image: chatImage,
    pdf: {
      type: 'file',
      file: { filename: 'order.pdf', file_data: `data:application/pdf;base64,${base64.pdf}` },
    },
    imageOfTool: (_id, content) => [
      { role: 'tool', tool_call_id: expect.stringMatching(/^[A-Za-z0-9]{9}$/), content },
      { role: 'assistant', content: 'I have the results.' },
      {
        role: 'user',
        content: [{ type: 'text', text: 'The files that these tools returned:' }, expect.anything(), chatImage],
      },
    ],
  },
];

let base: TestPlatform;
let server: ProviderServer;
let sessionUuid: string;
let sessionId: string;

beforeAll(async () => {
  base = await createTestPlatform();
});
afterAll(() => base.close());
beforeEach(() => {
  sessionUuid = newUuid();
  sessionId = formatId('ses', sessionUuid);
});
afterEach(() => server.close());

/** A file that the session uses. */
const store = (content: Uint8Array, filename?: string, mediaType?: string): Promise<FilePart> =>
  createFile(
    base.platform,
    systemSource(base.organizationId),
    { environment: 'production', sessionId: sessionUuid, filename, mediaType },
    Readable.from([content]),
  );

const callOf = (config: Model, content: ModelEntry['content']): ModelCall => ({
  organizationId: base.organizationId,
  sessionId,
  environment: 'production',
  config,
  instructions: '',
  tools: [],
  limits: { maxOutputTokens: null },
  outputSchema: null,
  transcript: [{ role: 'user', content }],
  callsBefore: 0,
});

async function eventsOf(call: ModelCall): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of createModels(base.platform)(call, new AbortController().signal)) events.push(event);
  return events;
}

const described = ({ fileId, mediaType, bytes, filename }: FilePart, why?: string) =>
  `[file ${fileId}:${filename ? ` "${filename}"` : ''} ${mediaType}, ${bytes} bytes${why ? `; not shown: ${why}` : ''}]`;

describe.each(formats)(
  '$provider',
  ({ provider, model, wire, messages, parts, text, image, pdf: pdfPart, imageOfTool }) => {
    beforeEach(async () => {
      server = await startProviderServer(wire.basePath);
    });

    /** The messages of the request for this transcript. */
    async function messagesFor(transcript: ModelEntry[], config: Partial<Model> = {}): Promise<unknown[]> {
      server.next(wire.respond({ parts: [{ text: ['ok'] }] }));
      const call = { ...callOf({ provider, model, baseUrl: server.url, ...config }, []), transcript };
      for await (const _ of createModels(base.platform)(call, new AbortController().signal));
      return server.requests.at(-1)!.body[messages] as unknown[];
    }

    const partsFor = async (content: ModelEntry['content'], config?: Partial<Model>) =>
      parts((await messagesFor([{ role: 'user', content }], config))[0] as never);

    test('gets images and PDF files in its own format, each after its description', async () => {
      const photo = await store(png, 'parcel.png');
      const order = await store(pdf, 'order.pdf');
      expect(await partsFor([{ type: 'text', text: 'What is broken?' }, photo, order])).toMatchObject([
        text('What is broken?'),
        text(described(photo)),
        image,
        text(described(order)),
        pdfPart,
      ]);
    });

    test('gets text files as text, and only the beginning of long ones', async () => {
      const table = await store(Buffer.from('a;b\nü;😀\n'), 'table.csv', 'text/csv');
      const long = await store(Buffer.from('ü'.repeat(200_000)), 'long.txt');
      const [first, second] = (await partsFor([table, long])) as { text: string }[];
      expect(first).toMatchObject(text(`${described(table)}\na;b\nü;😀\n`));
      expect(second!.text).toContain('only the first 256 KiB are shown');
      expect(second!.text.match(/ü/g)).toHaveLength(128 * 1024);
      expect(second!.text).not.toContain('\uFFFD');
    });

    test('gets text in another charset as text, and a PDF from its first line on', async () => {
      const utf16 = await store(Buffer.from('\ufeffname;city\r\nZoë;東京\r\n', 'utf16le'), 'a.csv', 'text/csv');
      const latin1 = await store(Buffer.from('name;city\r\nZoë;Köln\r\n', 'latin1'), 'b.csv', 'text/csv');
      const long = await store(Buffer.from('\ufeff😀 '.repeat(100_000), 'utf16le'), 'long.txt');
      const order = await store(Buffer.concat([Buffer.from('\r\n'), pdf]), 'order.pdf');
      const [first, second, third, ...rest] = (await partsFor([utf16, latin1, long, order])) as { text: string }[];
      expect(first).toMatchObject(text(`${described(utf16)}\nname;city\r\nZoë;東京\r\n`));
      expect(second).toMatchObject(text(`${described(latin1)}\nname;city\r\nZoë;Köln\r\n`));
      expect(third!.text.match(/😀/gu)).toHaveLength((256 * 1024) / 8);
      expect(third!.text).not.toContain('\uFFFD');
      expect(rest).toMatchObject([text(described(order)), pdfPart]);
    });

    test('gets the image that a tool returned, with the result or right after it', async () => {
      const photo = await store(png, 'photo.png');
      const toolCallId = formatId('call', newUuid());
      const said = await messagesFor([
        { role: 'user', content: [{ type: 'text', text: 'Look' }] },
        { role: 'assistant', content: [{ type: 'tool_call', toolCallId, tool: 'look', input: {} }] },
        { role: 'tool', content: [{ type: 'tool_result', toolCallId, output: ['See:', photo] }] },
      ]);
      expect(said.slice(2)).toMatchObject(imageOfTool(toolCallId, JSON.stringify(['See:', photo])));
    });

    test('gets the content of a file once, where it is named first, however often it is named', async () => {
      const photo = await store(png, 'photo.png');
      const toolCallId = formatId('call', newUuid());
      const said = await messagesFor([
        { role: 'user', content: [photo, photo] },
        { role: 'assistant', content: [{ type: 'tool_call', toolCallId, tool: 'look', input: {} }] },
        { role: 'tool', content: [{ type: 'tool_result', toolCallId, output: Array(20).fill(photo) }] },
        { role: 'user', content: [photo] },
      ]);
      const again = described(photo, 'its content is above');
      expect(parts(said[0] as never)).toMatchObject([text(described(photo)), image, text(again)]);
      expect(JSON.stringify(said).split(base64.png)).toHaveLength(2);
    });

    test('gets a result that looks like a file, and is none, as the text that it is', async () => {
      const photo = await store(png, 'photo.png');
      const toolCallId = formatId('call', newUuid());
      const output = [{ fileId: 'file_1' }, { bytes: -1e12 }, { bytes: 1e300 }, { bytes: '1' }, { filename: {} }].map(
        (wrong) => ({ ...photo, mediaType: 'text/plain', ...wrong }),
      );
      const said = await messagesFor([
        { role: 'user', content: [photo] },
        { role: 'assistant', content: [{ type: 'tool_call', toolCallId, tool: 'look', input: {} }] },
        { role: 'tool', content: [{ type: 'tool_result', toolCallId, output }] },
      ]);
      expect(parts(said[0] as never)).toMatchObject([text(described(photo)), image]);
      expect(JSON.stringify(said.slice(1))).not.toContain('[file ');
    });

    test('gets a description of a file that is left out', async () => {
      const [photo, other] = [await store(png, 'photo.png'), await store(pdf, 'order.pdf')];
      server.next(wire.respond({ parts: [{ text: ['ok'] }] }));
      const call = callOf({ provider, model, baseUrl: server.url }, [photo, other]);
      const without = { ...call, withoutFiles: [photo.fileId] };
      for await (const _ of createModels(base.platform)(without, new AbortController().signal));
      const [said] = server.requests.at(-1)!.body[messages] as unknown[];
      const note = text(described(photo, 'it was left out on request'));
      expect(parts(said as never)).toMatchObject([note, text(described(other)), pdfPart]);
    });

    test.each([
      ['with status 400', (error: unknown) => refuse(400, { body: error })],
      ['with status 413', (error: unknown) => refuse(413, { body: error })],
      ['with status 200', (error: unknown) => refuse(200, { body: error })],
      ['in a stream', (error: unknown) => raw([`event: error\ndata: ${JSON.stringify(error)}\n\n`])],
    ])('gets a description of each file that its provider refuses %s, with the next request', async (_, reply) => {
      const [photo, order] = [await store(png, 'photo.png'), await store(pdf, 'order.pdf')];
      server.next(
        reply(wire.error(400, 'Image too large')),
        reply(wire.error(400, 'The document has no pages')),
        wire.respond({ parts: [{ text: ['ok'] }] }),
      );
      const call = callOf({ provider, model, baseUrl: server.url }, [photo, order]);
      const events = await eventsOf(call);
      expect(events.at(-1)).toMatchObject({ type: 'finish', refusedFiles: [photo.fileId, order.fileId] });
      const said = server.requests.map(({ body }) => parts((body[messages] as never[])[0]!));
      const why = 'the provider of its model refused it';
      expect(said).toMatchObject([
        [text(described(photo)), image, text(described(order)), pdfPart],
        [text(described(photo, why)), text(described(order)), pdfPart],
        [text(described(photo, why)), text(described(order, why))],
      ]);
    });

    test('gets no further request if it is not certain which file its provider refuses', async () => {
      const [photo, other] = [await store(png, 'photo.png'), await store(Buffer.concat([png, noise(9)]))];
      server.next(refuse(400, { body: wire.error(400, 'Could not process image') }));
      const asked = eventsOf(callOf({ provider, model, baseUrl: server.url }, [photo, other]));
      await expect(asked).rejects.toMatchObject({
        message: expect.stringContaining(
          `: it is about one of the files "photo.png" (${photo.fileId}), ${other.fileId}; the turn can be retried without it`,
        ),
        retryWithout: { fileIds: [photo.fileId, other.fileId] },
      });
      expect(server.requests).toHaveLength(1);
    });

    test('gets a description of what its model does not take', async () => {
      const photo = await store(png, 'photo.png');
      const archive = await store(Buffer.concat([Buffer.from('PK\u0003\u0004'), noise(100)]), 'all.zip');
      const why = `the model ${provider}/${model} takes no`;
      expect(await partsFor([photo, archive], { input: [] })).toMatchObject([
        text(described(photo, `${why} images`)),
        text(described(archive, `${why} files of the type ${archive.mediaType}`)),
      ]);
    });

    test('gets a description of a file that was deleted, or that another session uses', async () => {
      const photo = await store(png, 'photo.png');
      await deleteFile(base.ctx, { fileId: photo.fileId });
      const own = sessionUuid;
      sessionUuid = newUuid();
      const other = await store(png, 'other.png');
      sessionUuid = own;
      expect(await partsFor([photo, other])).toMatchObject([
        text(described(photo, 'it was deleted')),
        text(described(other, 'it was deleted')),
      ]);
    });

    test('gets the newest files, as many bytes as a request may have', async () => {
      const MIB = 1024 * 1024;
      // Nine files of 3 MiB fit nowhere but at OpenAI and Anthropic, which take 32 and 20.
      const images: FilePart[] = [];
      for (let n = 0; n < 12; n++)
        images.push(await store(Buffer.concat([png, noise(3 * MIB - png.length)]), `${n}.png`));
      const all = await partsFor(images);
      const shown = all.filter((part) => JSON.stringify(part).length > MIB).length;
      const max = { openai: 10, anthropic: 6, google: 4, 'openai-compatible': 4 }[provider as string]!;
      expect(shown).toBe(max);
      const why = 'only the newest files of the conversation are shown';
      expect(all.slice(0, 12 - max)).toMatchObject(images.slice(0, 12 - max).map((file) => text(described(file, why))));
      expect(server.requests.at(-1)!.text.length).toBeLessThan(4 * MIB * max + 100_000);
    });
  },
);

test('Google gets an image of a telephone, and a description of a GIF', async () => {
  server = await startProviderServer(generateContent.basePath);
  const heic = await store(Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic', 'latin1'), 'IMG_0001.HEIC');
  const gif = await store(Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=', 'base64'), 'moving.gif');
  server.next(generateContent.respond({ parts: [{ text: ['ok'] }] }));
  const call = callOf({ provider: 'google', model: 'gemini-3-pro', baseUrl: server.url }, [heic, gif]);
  for await (const _ of createModels(base.platform)(call, new AbortController().signal));
  const [{ parts }] = server.requests.at(-1)!.body.contents as [{ parts: unknown[] }];
  const why = 'the model google/gemini-3-pro takes no images of the type image/gif';
  expect(parts).toMatchObject([
    { text: described(heic) },
    { inlineData: { mimeType: 'image/heic' } },
    { text: described(gif, why) },
  ]);
});

describe('Anthropic, which refuses a request with an image that is too large', () => {
  /** The header of a PNG of this size. */
  const pngOf = (width: number, height: number) => {
    const bytes = Buffer.from(png);
    bytes.writeUInt32BE(width, 16);
    bytes.writeUInt32BE(height, 20);
    return bytes;
  };
  const shownOf = async (files: FilePart[]): Promise<boolean[]> => {
    server = await startProviderServer(anthropicMessages.basePath);
    server.next(anthropicMessages.respond({ parts: [{ text: ['ok'] }] }));
    const call = callOf({ provider: 'anthropic', model: 'claude-sonnet-4-5', baseUrl: server.url }, files);
    for await (const _ of createModels(base.platform)(call, new AbortController().signal));
    const sent = JSON.stringify(server.requests.at(-1)!.body);
    return files.map(({ fileId }) => !sent.includes(`${fileId}: image/png, ${png.length} bytes; not shown`));
  };
  const storeAll = async (...sizes: [number, number][]) => {
    const files: FilePart[] = [];
    for (const size of sizes) files.push(await store(pngOf(...size)));
    return files;
  };

  test('gets a description of one with more than 8000 pixels on a side', async () => {
    expect(await shownOf(await storeAll([8000, 8000], [8001, 10], [10, 8001], [10, 10]))).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  test('gets the newest 20 images if one of more than 20 has over 2000 pixels on a side, and all of them otherwise', async () => {
    const small = await storeAll(...Array.from({ length: 21 }, (): [number, number] => [2000, 2000]));
    expect(await shownOf(small)).not.toContain(false);
    const [large] = await storeAll([2001, 10]);
    expect(await shownOf([...small.slice(0, 19), large!])).not.toContain(false);
    expect(await shownOf([...small, large!])).toEqual([false, false, ...Array(20).fill(true)]);
  });
});

describe('Bedrock, which refuses a request with too many files', () => {
  const photos = (n: number) => Promise.all(Array.from({ length: n }, (_, at) => store(png, `${at}.png`)));
  const orders = (n: number) => Promise.all(Array.from({ length: n }, () => store(pdf, 'order.pdf')));
  /** Whether each is shown. */
  const shownOf = async (files: FilePart[], transcript?: ModelEntry[]): Promise<boolean[]> => {
    const strict = await startStrictServer('bedrock');
    server = strict;
    const tools = [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object' } }];
    const call = { ...callOf(strict.model, files), tools, ...(transcript && { transcript }) };
    for await (const _ of createModels(base.platform)(call, new AbortController().signal));
    expect(strict.refusals).toEqual([]);
    const sent = JSON.stringify(server.requests.at(-1)!.body);
    return files.map(({ fileId }) => !new RegExp(`${fileId}:[^[\\]]*; not shown`).test(sent));
  };

  test('gets the newest 5 PDF files of all messages, under names of their own', async () => {
    const files = await orders(7);
    const transcript = files.flatMap((file): ModelEntry[] => [
      { role: 'user', content: [file] },
      { role: 'assistant', content: [{ type: 'text', text: 'I see.' }] },
    ]);
    expect(await shownOf(files, transcript.slice(0, -1))).toEqual([false, false, true, true, true, true, true]);
  });

  test('gets the newest 20 images, or images and PDF files, and a PDF file that is older than an image without a place', async () => {
    expect(await shownOf(await photos(21))).toEqual([false, ...Array(20).fill(true)]);
    expect(await shownOf([...(await orders(2)), ...(await photos(19))])).toEqual([false, ...Array(20).fill(true)]);
    expect(await shownOf([...(await photos(1)), ...(await orders(6)), ...(await photos(14))])).toEqual([
      ...[true, false],
      ...Array(19).fill(true),
    ]);
  });

  test('gets PDF files of one name that tools returned', async () => {
    const [one, two] = await orders(2);
    const call = (toolCallId: string) => ({ type: 'tool_call' as const, toolCallId, tool: 'look', input: {} });
    const result = (toolCallId: string, file: FilePart) =>
      ({ type: 'tool_result', toolCallId, output: file }) as unknown as ModelEntry['content'][number];
    const ids = ['call_01k2j8z5w3e9r7t1y6v4q0m8n2', 'call_01k2j8z5w3e9r7t1y6v4q0m8n3'] as const;
    const transcript: ModelEntry[] = [
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
      { role: 'assistant', content: ids.map(call) },
      { role: 'tool', content: [result(ids[0], one!), result(ids[1], two!)] },
    ];
    expect(await shownOf([one!, two!], transcript)).toEqual([true, true]);
    const sent = JSON.stringify(server.requests.at(-1)!.body);
    expect(sent.match(/"document":\{/g)).toHaveLength(2);
  });
});

test('a file that can’t be read now is a failure that can be retried, and says nothing of the file', async () => {
  server = await startProviderServer('/v1');
  const photo = await store(png, 'secret-name.png');
  const db = { ...base.platform.db, query: () => Promise.reject(new Error('select secret-name.png')) };
  const call = callOf({ provider: 'openai-compatible', model: 'small', baseUrl: server.url }, [photo]);
  const failure: ModelFailure = await createModels({ ...base.platform, db })(call, new AbortController().signal)
    .next()
    .then(
      () => expect.unreachable(),
      (error) => error,
    );
  expect(failure).toMatchObject({ name: 'ModelFailure', code: 'model_unavailable', retryable: true });
  expect(failure.message).not.toContain('secret-name');
  expect(server.requests).toEqual([]);
});
