// The headers of requests that the OpenAPI document names: those of some routes only.
import { type Route, uploadHeaders } from '@signalbox/contract';
import type { Parameter } from './openapi.ts';

export function headersOf({ method, upload, stream, canOnlyCreate }: Route): Parameter[] {
  return [
    ...(canOnlyCreate ? [onlyCreate] : []),
    ...(method === 'POST' ? [idempotencyKey] : []),
    ...(upload ? Object.entries(uploadHeaders).map(([name, text]) => header(name, text)) : []),
    ...(stream === 'sse' ? [lastEventId] : []),
    ...(stream === 'content' ? contentHeaders : []),
  ];
}

function header(name: string, description: string, schema: Parameter['schema'] = { type: 'string' }): Parameter {
  return { name, in: 'header', required: false, description, schema };
}

const idempotencyKey = header(
  'Idempotency-Key',
  'Makes the request safe to repeat: for 24 hours, the same key and body return the first response.',
  { type: 'string', minLength: 1, maxLength: 255 },
);

const onlyCreate = header(
  'If-None-Match',
  '`*`: only create; 412 `precondition_failed` if there is one of this name.',
  {
    type: 'string',
    enum: ['*'],
  },
);

const lastEventId = header(
  'Last-Event-ID',
  'The cursor to resume after, as browsers send it when they reconnect; takes precedence over `cursor`.',
);

const contentHeaders = [
  header('Range', 'One range of bytes, such as `bytes=0-999`.'),
  header(
    'If-Range',
    'The `ETag` of the content that the range belongs to; if it is another, the whole content is sent.',
  ),
  header('If-None-Match', 'The `ETag` of the content that the client has.'),
];
