/** End users: for whom a session is. The integrator names them by ids of their own; the service has no list of them. */
import { type Static, Strict, Type } from './schema.ts';

/** Compared exactly, character by character. */
export const EndUserId = Type.String({
  minLength: 1,
  maxLength: 200,
  description: 'Your own id of the user. Upper and lower case differ.',
  examples: ['user_1041'],
});

export const EndUser = Strict(
  {
    id: EndUserId,
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'Shown in the console.' })),
  },
  { title: 'EndUser', description: 'The user of your application that a session is for.' },
);
export type EndUser = Static<typeof EndUser>;
