/** What a retry leaves out of a session, because a provider refuses a request with it. */
import { Id, type Static, Strict, type TSchema, Type } from './schema.ts';

/** What is kept from models although the conversation, or the agent, has it. */
export const LeftOut = Type.Object(
  {
    fileIds: Type.Array(Id('file'), { description: 'Described to the model, and not sent.' }),
    messageIds: Type.Array(Id('msg'), { description: 'A note says that a message is missing.' }),
    tools: Type.Array(Type.String(), {
      description: 'Not offered. The name of an MCP server is for all of its tools.',
    }),
    refusedFiles: Type.Array(Type.Object({ fileId: Id('file'), model: Type.String() }), {
      description:
        'Files that a model’s provider refused, with the `provider/model`. The service left them out of its own accord, and the request was accepted. Other models get them.',
    }),
  },
  { title: 'LeftOut' },
);
export type LeftOut = Static<typeof LeftOut>;

/** The most of each kind in one request. */
const MAX = 100;
const Some = <S extends TSchema>(item: S, description: string) =>
  Type.Optional(Type.Array(item, { maxItems: MAX, description }));
/** Names files, messages and tools of a session: what a retry leaves out, and what the error of a turn says that it could. */
export const RetryWithout = Strict(
  {
    fileIds: Some(Id('file'), 'Files of the conversation.'),
    messageIds: Some(
      Id('msg'),
      'Messages of the conversation. A response that called tools is left out together with the results.',
    ),
    tools: Some(
      Type.String({ minLength: 1, maxLength: 200 }),
      'Names of tools of the agent. The name of an MCP server is for all of its tools.',
    ),
  },
  { title: 'RetryWithout' },
);
export type RetryWithout = Static<typeof RetryWithout>;
export const RetrySession = Strict(
  {
    without: Type.Optional(
      Type.Unsafe<RetryWithout>({
        ...RetryWithout,
        description:
          'What models do not get from now on, also in later turns and in forks, because a provider refuses a request with it: `error.retryWithout` of the session, or anything else of the conversation and the agent. See `leftOut` of the session. Nothing is left out if one of these is unknown: 400 names it.',
      }),
    ),
  },
  { title: 'RetrySession' },
);
export type RetrySession = Static<typeof RetrySession>;
