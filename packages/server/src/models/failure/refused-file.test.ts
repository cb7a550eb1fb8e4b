// Which file of a request its provider refuses, by the errors of providers: one file, or several that it could be.
import type { FilePart } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { errorInBody } from '../model/provider-error.ts';
import { suspectFiles } from './refused-file.ts';

const named = (fileId: string, mediaType: string): FilePart => ({ type: 'file', fileId, mediaType, bytes: 3 });
const FILES: Record<string, FilePart> = {
  QQ: named('a', 'image/png'),
  Qg: named('b', 'image/jpeg'),
  Qw: named('c', 'application/pdf'),
};
/** The file, or several that it could be; undefined if the error is not about files. */
const refused = (error: unknown, request: object) =>
  suspectFiles(errorInBody(JSON.stringify(error))!, JSON.stringify(request), (text) => FILES[text])
    .map(({ fileId }) => fileId)
    .join() || undefined;

const text = { type: 'text', text: 'QUESTION' };
const image = (data: string) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } });
const pdf = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'Qw' } };
const anthropic = (...content: object[]) => ({ model: 'm', messages: [{ role: 'user', content }] });
const ofAnthropic = (message: string, more = {}) => ({
  type: 'error',
  error: { type: 'invalid_request_error', message, ...more },
});
const chat = (...urls: string[]) => ({
  model: 'm',
  messages: [{ role: 'user', content: [text, ...urls.map((url) => ({ type: 'image_url', image_url: { url } }))] }],
});
const ofOpenai = (message: string, param: string | null, code: string | null = null) => ({
  error: { message, type: 'invalid_request_error', param, code },
});
const responses = {
  model: 'm',
  input: [
    { role: 'system', content: 'x' },
    { role: 'user', content: [text, { type: 'input_image', image_url: 'data:image/png;base64,QQ' }] },
    { type: 'function_call_output', output: [text, { type: 'input_image', image_url: 'data:image/png;base64,Qg' }] },
  ],
};
const google = (...parts: object[]) => ({ contents: [{ role: 'user', parts }] });
const inline = (data: string, mimeType = 'image/png') => ({ inlineData: { mimeType, data } });
const ofGoogle = (message: string) => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } });

test.each([
  // Its place.
  [
    'a',
    'messages.0.content.1.image.source.base64.data: dimensions exceed 8000 pixels',
    [text, image('QQ'), image('Qg')],
  ],
  [
    'b',
    'messages.0.content.2.image.source.base64.data: dimensions exceed 8000 pixels',
    [text, image('QQ'), image('Qg')],
  ],
  ['c', 'messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid.', [pdf, image('Qg')]],
  [
    'b',
    'messages.0.content.0.tool_result.content.1.image.source: too large',
    [{ type: 'tool_result', content: [text, image('Qg')] }, image('QQ')],
  ],
  // The only one of what it is about.
  ['a', 'Could not process image', [text, image('QQ'), pdf]],
  ['c', 'A maximum of 100 PDF pages may be provided.', [text, image('QQ'), image('Qg'), pdf]],
  ['a', 'messages.0: image exceeds 5 MB maximum', [text, image('QQ')]],
  // A gateway has joined the texts before it.
  ['a', 'messages.0.content.1.image.source.base64.data: over 8000 pixels', [text, text, image('QQ')]],
  // One of several.
  ['a,b', 'messages.0.content.1.image.source.base64.data: over 8000 pixels', [text, text, image('QQ'), image('Qg')]],
  ['a,b', 'Could not process image', [image('QQ'), pdf, image('Qg'), image('QQ')]],
  // Something else.
  [undefined, 'messages.0: all messages must have non-empty content', [text, image('QQ')]],
  [undefined, 'messages.0.content.0.text: an image is no text', [text, image('QQ')]],
  [undefined, 'messages.7.content.0: wrong', [text, image('QQ')]],
  [undefined, 'tools.0.custom.input_schema: image is not allowed', [text, pdf]],
  [undefined, 'max_tokens: too many', [text, image('QQ')]],
] as const)('Anthropic: %s for %j', (expected, message, content) => {
  expect(refused(ofAnthropic(message), anthropic(...content))).toBe(expected);
});

test('the paths in details name the file', () => {
  const details = { error_code: 'image_dimensions_too_large', paths: ['messages.0.content.1.image.source'] };
  const request = anthropic(image('QQ'), image('Qg'));
  expect(refused(ofAnthropic('Too large', { details }), request)).toBe('b');
});

test.each([
  ['a', ofOpenai('Invalid', 'input[1].content[1].image_url', 'invalid_value'), responses],
  ['b', ofOpenai('Invalid', 'input[2].output[1].image_url', 'invalid_value'), responses],
  [
    'a,b',
    ofOpenai('The image data you provided does not represent a valid image.', 'input', 'invalid_image'),
    responses,
  ],
  ['a', ofOpenai('You uploaded an unsupported image.', null, 'invalid_image_format'), chat('data:image/png;base64,QQ')],
  [
    'b',
    ofOpenai('Wrong', 'messages.[0].content.[2].image_url', 'invalid_image_url'),
    chat('QQ', 'data:image/png;base64,Qg'),
  ],
  [undefined, ofOpenai('Wrong', 'messages.[0].content.[1].image_url'), chat('https://example.com/a.png', 'QQ')],
  ['a', ofOpenai('At most 0 image(s) may be provided in one prompt.', null), chat('data:image/png;base64,QQ')],
  [undefined, ofOpenai('Unsupported value', 'temperature'), chat('data:image/png;base64,QQ')],
  ['a', ofGoogle('Unable to process input image. Please retry'), google(text, inline('QQ'), inline('Qw'))],
  ['c', ofGoogle('The document has no pages.'), google(text, inline('QQ'), inline('Qw'))],
  [
    'b',
    ofGoogle("Invalid value at 'contents[0].parts[1].inline_data.data' (TYPE_BYTES), Base64 decoding failed"),
    google(inline('QQ'), inline('Qg')),
  ],
  [undefined, ofGoogle('Request contains an invalid argument.'), google(inline('QQ'))],
] as const)('other providers: %s for %j', (expected, error, request) => {
  expect(refused(error, request)).toBe(expected);
});
