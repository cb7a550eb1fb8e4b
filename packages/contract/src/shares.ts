/** Links by which anyone can read one session. */
import { Id, ListQuery, Name, Nullable, Page, type Static, Strict, Timestamp, Type } from './schema.ts';

export const SessionShare = Type.Object(
  {
    shareId: Id('shr'),
    sessionId: Id('ses'),
    title: Nullable(Type.String(), { description: 'What its page is called; null: "Shared conversation".' }),
    includesTools: Type.Boolean({
      description: 'Whether it shows tool calls with their inputs and results, and the files that tools created.',
    }),
    createdBy: Type.String({ description: 'The name of the person or API key.' }),
    expiresAt: Timestamp,
    createdAt: Timestamp,
  },
  { title: 'SessionShare', description: 'A link by which anyone who has it can read a session.' },
);
export type SessionShare = Static<typeof SessionShare>;

export const SessionShareParams = Strict({ sessionId: Id('ses'), shareId: Id('shr') });
export const ListSessionShares = ListQuery({});
export const SessionSharePage = Page(SessionShare);

export const CreateSessionShare = Strict(
  {
    title: Type.Optional(Name),
    includesTools: Type.Optional(
      Type.Boolean({ default: false, description: 'Also show tool calls with their inputs and results.' }),
    ),
    expiresAt: Type.Optional(
      Type.String({ ...Timestamp, description: 'At most a year from now; by default in 7 days.' }),
    ),
  },
  { title: 'CreateSessionShare' },
);

export const CreatedSessionShare = Type.Object(
  {
    share: SessionShare,
    link: Type.Optional(
      Type.String({
        description:
          'Pass it on yourself; it is shown only once. Absent only from an idempotent replay by another key or sign-in.',
      }),
    ),
  },
  { title: 'CreatedSessionShare' },
);
