import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { createRedaction } from '../tool/redact.ts';
import { type ReturnedFile, storeFiles } from '../tool/returned-file.ts';
import { mcpOutcome } from './mcp-result.ts';

const plain = createRedaction({});
const image = { type: 'image', mimeType: 'image/png', data: Buffer.alloc(100).toString('base64') };

test.each<[string, unknown, unknown]>([
  ['text', { content: [{ type: 'text', text: 'a' }] }, { output: 'a' }],
  ['several texts', { content: ['a', 'b'].map((text) => ({ type: 'text', text })) }, { output: 'a\nb' }],
  ['text that looks like JSON', { content: [{ type: 'text', text: '{"a":1}' }] }, { output: '{"a":1}' }],
  [
    'structured content',
    { content: [{ type: 'text', text: '{"a":1}' }], structuredContent: { a: 1 } },
    { output: { a: 1 } },
  ],
  ['structured content that is not an object', { content: [], structuredContent: [1] }, { output: [1] }],
  ['structured content that is null', { content: [], structuredContent: null }, { output: null }],
  ['structured content that is null, alone', { structuredContent: null }, { output: null }],
  [
    'structured content that is null, and a text',
    { content: [{ type: 'text', text: 'a' }], structuredContent: null },
    { output: 'a' },
  ],
  ...(
    [
      ['a text that says something else', ['The last page has the total.'], { orders: [1] }, [0]],
      ['two texts, and one repeats it', ['See', '{"a": 1}'], { a: 1 }, [0]],
      ['a text with a part of it', ['{"a":1}'], { a: 1, b: 2 }, [0]],
      ['a text with more than it', ['{"a":1,"b":2}'], { a: 1 }, [0]],
      ['the same as indented JSON', ['{\n  "a": [1, 2]\n}'], { a: [1, 2] }, []],
      ['the same in another order', ['{"b":2,"a":1}'], { a: 1, b: 2 }, []],
      ['the same in a fence', ['```json\n{"a":1}\n```'], { a: 1 }, []],
      ['the wrapped text', ['Sunny, 22°'], { result: 'Sunny, 22°' }, []],
      ['the wrapped number', ['5'], { result: 5 }, []],
      ['the wrapped list', ['[1,2]'], { result: [1, 2] }, []],
      ['one text for each item of the wrapped list', ['{"a":1}', 'b'], { result: [{ a: 1 }, 'b'] }, []],
      ['one text for each item of a list', ['1', '2'], [1, 2], []],
      ['fewer texts than the list has items', ['1'], [1, 2], [0]],
      ['an integer that a double can’t represent', ['{"id":9007199254740993}'], { id: '9007199254740993' }, []],
    ] as const
  ).map(([title, texts, structuredContent, kept]): [string, unknown, unknown] => {
    const content = texts.map((text) => ({ type: 'text', text }));
    const beside = kept.map((at) => content[at]);
    const output = beside.length === 0 ? structuredContent : [structuredContent, ...beside];
    return [`structured content and ${title}`, { content, structuredContent }, { output }];
  }),
  [
    'structured content with a link and a resource',
    {
      content: [
        { type: 'resource_link', uri: 'a:1', name: 'A' },
        { type: 'resource', resource: { uri: 'a:2', text: 'hello' } },
      ],
      structuredContent: { a: 1 },
    },
    {
      output: [
        { a: 1 },
        { type: 'resource_link', uri: 'a:1', name: 'A' },
        { type: 'resource', uri: 'a:2', text: 'hello' },
      ],
    },
  ],
  [
    'structured content that does not match its schema',
    { content: [], structuredContent: 'not an object' },
    { output: 'not an object' },
  ],
  ['the result of an old server', { toolResult: { a: 1 } }, { output: { a: 1 } }],
  ['the text of an old server', { toolResult: 'a' }, { output: 'a' }],
  ['a text instead of a list', { content: 'a' }, { output: 'a' }],
  ['one part instead of a list', { content: { type: 'text', text: 'a' } }, { output: 'a' }],
  ['a list of plain texts', { content: ['a', 'b'] }, { output: 'a\nb' }],
  ['only fields of its own', { rows: [1], _meta: { a: 1 } }, { output: { rows: [1] } }],
  ['an empty text', { content: [{ type: 'text', text: '' }] }, { output: '' }],
  ['structured content alone', { structuredContent: { a: 1 } }, { output: { a: 1 } }],
  ['nothing', { content: [] }, { output: null }],
  [
    'text with an image',
    { content: [{ type: 'text', text: 'see' }, image] },
    {
      output: [
        { type: 'text', text: 'see' },
        { type: 'image', mimeType: 'image/png', bytes: 100, note: 'the bytes are not shown' },
      ],
    },
  ],
  [
    'a resource with text',
    {
      content: [{ type: 'resource', resource: { uri: 'a:1', mimeType: 'text/plain', text: 'hello', _meta: { a: 1 } } }],
    },
    { output: [{ type: 'resource', uri: 'a:1', mimeType: 'text/plain', text: 'hello' }] },
  ],
  [
    'a resource of bytes',
    { content: [{ type: 'resource', resource: { uri: 'a:1', blob: Buffer.alloc(7).toString('base64') } }] },
    { output: [{ type: 'resource', uri: 'a:1', bytes: 7, note: 'the bytes are not shown' }] },
  ],
  [
    'a link, without the fields for clients',
    {
      content: [{ type: 'resource_link', uri: 'a:1', name: 'A', annotations: { priority: 1 }, icons: [{ src: 'x' }] }],
    },
    { output: [{ type: 'resource_link', uri: 'a:1', name: 'A' }] },
  ],
  [
    'a resource with a text and bytes',
    { content: [{ type: 'resource', resource: { uri: 'a:1', text: 'hello', blob: 'AAEC' } }] },
    {
      output: [
        { type: 'resource', uri: 'a:1', text: 'hello' },
        { type: 'resource', uri: 'a:1', bytes: 3, note: 'the bytes are not shown' },
      ],
    },
  ],
  [
    'audio, and bytes of a type that is not known',
    {
      content: [
        { type: 'audio', mimeType: 'audio/wav', data: 'AAEC' },
        { type: 'video', mimeType: 'video/mp4', data: 'AAECAw==' },
      ],
    },
    {
      output: [
        { type: 'audio', mimeType: 'audio/wav', bytes: 3, note: 'the bytes are not shown' },
        { type: 'video', mimeType: 'video/mp4', bytes: 4, note: 'the bytes are not shown' },
      ],
    },
  ],
  [
    'an image as a data URL, and one that is elsewhere',
    {
      content: [
        { type: 'image', mimeType: 'image/png', data: 'data:image/png;base64,AAEC' },
        { type: 'image', url: 'https://a.example.com/b.png' },
      ],
    },
    {
      output: [
        { type: 'image', mimeType: 'image/png', bytes: 3, note: 'the bytes are not shown' },
        { type: 'image', url: 'https://a.example.com/b.png' },
      ],
    },
  ],
  [
    'text of an unknown type',
    { content: [{ type: 'document', mimeType: 'text/plain', data: 'hello' }] },
    { output: [{ type: 'document', mimeType: 'text/plain', data: 'hello' }] },
  ],
  [
    'a text for the model and one for the user',
    {
      content: [
        { type: 'text', text: 'a', annotations: { audience: ['assistant', 'user'], priority: 1 } },
        { type: 'text', text: 'b', annotations: { audience: ['user'] } },
      ],
    },
    {
      output: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b', audience: ['user'] },
      ],
    },
  ],
  ['content of an unknown type', { content: [{ type: 'hologram', x: 1 }] }, { output: [{ type: 'hologram', x: 1 }] }],
  [
    'invalid content',
    { content: [7, null] },
    {
      output: [
        { type: 'unknown', value: 7 },
        { type: 'unknown', value: null },
      ],
    },
  ],
  ['an error', { isError: true, content: [{ type: 'text', text: 'no such order' }] }, { error: 'no such order' }],
  [
    'an error as structured content',
    { isError: true, content: [], structuredContent: { code: 7 } },
    { error: '{"code":7}' },
  ],
  [
    'an error with a text and structured content',
    { isError: true, content: [{ type: 'text', text: 'no such order' }], structuredContent: { code: 7 } },
    { error: 'no such order\n{"code":7}' },
  ],
  [
    'an error whose text repeats the structured content',
    { isError: true, content: [{ type: 'text', text: '{"code": 7}' }], structuredContent: { code: 7 } },
    { error: '{"code":7}' },
  ],
  [
    'an error with a long text and structured content',
    { isError: true, content: [{ type: 'text', text: 'x'.repeat(9000) }], structuredContent: { code: 7 } },
    { error: `${'x'.repeat(2048)}\n{"code":7}` },
  ],
  [
    'an error with a text for the user',
    { isError: true, content: [{ type: 'text', text: 'no', annotations: { audience: ['user'] } }] },
    { error: 'no' },
  ],
  ['an error of an old server', { isError: true, toolResult: 'no' }, { error: 'no' }],
  ['an error with fields of its own', { isError: true, reason: 'no' }, { error: '{"reason":"no"}' }],
  ['an error with an image', { isError: true, content: [image] }, { error: expect.stringContaining('"bytes":100') }],
  ['an error without text', { isError: true, content: [] }, { error: 'The tool failed without a message.' }],
  ['a long error', { isError: true, content: [{ type: 'text', text: 'x'.repeat(9000) }] }, { error: 'x'.repeat(2048) }],
])('%s', async (_title, result, outcome) => {
  expect(await storeFiles(mcpOutcome(result, plain), plain, undefined)).toEqual(outcome);
});

test('images, audio and resources of bytes are files, also next to structured content', async () => {
  const blob = { type: 'resource', resource: { uri: 'demo://a/b.bin', blob: 'AAEC' } };
  const save = async ({ content, mediaType, filename }: ReturnedFile['file']) => ({
    type: 'file' as const,
    fileId: 'file_1',
    mediaType: mediaType ?? 'application/octet-stream',
    bytes: (await buffer(content)).length,
    ...(filename !== undefined && { filename }),
  });
  const stored = async (result: unknown) => (await storeFiles(mcpOutcome(result, plain), plain, save)).output;
  const imagePart = { type: 'file', fileId: 'file_1', mediaType: 'image/png', bytes: 100 };
  const text = { type: 'text', text: 'see' };
  expect(await stored({ content: [text, image, blob] })).toEqual([
    text,
    imagePart,
    { ...imagePart, mediaType: 'application/octet-stream', bytes: 3, filename: 'demo://a/b.bin' },
  ]);
  expect(await stored({ content: [text, image], structuredContent: { a: 1 } })).toEqual([{ a: 1 }, text, imagePart]);
});

test('a file with a secret, and one beyond the limit of a result, are described and not stored', async () => {
  const redact = createRedaction({ TOKEN: 'sk-4711' });
  let saved = 0;
  const save = async ({ content }: ReturnedFile['file']) => {
    await buffer(content);
    saved += 1;
    return 'it was not stored: full';
  };
  const secret = { ...image, data: Buffer.from('\0PNG sk-4711').toString('base64') };
  const { output } = await storeFiles(mcpOutcome({ content: [secret, image] }, redact), redact, save);
  expect(output).toEqual([
    { type: 'image', mimeType: 'image/png', bytes: 12, note: 'it contains a secret, so it was not stored' },
    { type: 'image', mimeType: 'image/png', bytes: 100, note: 'it was not stored: full' },
  ]);
  expect(saved).toBe(1);
  await storeFiles(mcpOutcome({ content: Array(30).fill(image) }, plain), plain, save);
  expect(saved).toBe(21);
});

test.each([[{}], [null], [7], ['text'], [[]], [{ _meta: { a: 1 } }], [{ content: null }]])(
  'a value that is not a result (%j) is an error with an unknown outcome',
  (result) => {
    expect(mcpOutcome(result, plain)).toEqual({
      error: 'The server’s response can’t be used: it has no content. The request may have taken effect.',
      outcomeUnknown: true,
    });
  },
);

test('secrets and characters that can’t be stored are removed', () => {
  const redact = createRedaction({ TOKEN: 'sk-1' });
  expect(mcpOutcome({ content: [{ type: 'text', text: 'a\0b sk-1' }] }, redact)).toEqual({
    output: 'ab [secret TOKEN]',
  });
  const result = { content: [], structuredContent: { 'sk-1': ['s\0k-1', '\ud800'] } };
  expect(mcpOutcome(result, redact)).toEqual({ output: { '[secret TOKEN]': ['[secret TOKEN]', '\ufffd'] } });
  expect(mcpOutcome({ isError: true, content: [{ type: 'text', text: 'bad sk-1' }] }, redact)).toEqual({
    error: 'bad [secret TOKEN]',
  });
});
