/** End users: for whom a session is. The integrator names them by ids of their own; the service has no list of them. */
import { Nullable, OneOf, type Static, Strict, Timestamp, Type } from './schema.ts';

/** Compared exactly, character by character. It is also a segment of a path, and URLs can't have `.` and `..` as one. */
export const EndUserId = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^(\\.{0,2}[^.]|\\.{3})',
  'x-expected': 'anything but "." and ".."',
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

/**
 * Whether everything of an end user is erased.
 *
 * - `running`: it continues until nothing is left, also if nodes stop. → finished
 * - `finished`: final. A later session for the same id is a new one.
 */
export const erasureStatuses = ['running', 'finished'] as const;

export const Erasure = Type.Object(
  {
    status: OneOf(erasureStatuses, { title: 'ErasureStatus' }),
    deletedSessions: Type.Integer({ description: 'Sessions deleted so far, including child sessions and forks.' }),
    deletedFiles: Type.Integer({
      description: 'Files deleted so far: files that these sessions used or created, except files that others use too.',
    }),
    deletedSchedules: Type.Integer({
      description: 'Schedules deleted so far: schedules that opened sessions for the end user.',
    }),
    startedAt: Timestamp,
    finishedAt: Nullable(Timestamp),
  },
  { title: 'Erasure' },
);
export type Erasure = Static<typeof Erasure>;

export const EndUserDetails = Type.Object(
  {
    endUserId: EndUserId,
    hasSessions: Type.Boolean({ description: 'Whether there is any session for the end user.' }),
    erasure: Nullable(Erasure, { description: 'The latest one; null if the end user was never erased.' }),
  },
  { title: 'EndUserDetails' },
);
export type EndUserDetails = Static<typeof EndUserDetails>;

export const EndUserParams = Strict({ endUserId: EndUserId });
