/** Schedules: sessions that the service opens at set times. */
import type { Shape } from './components.ts';
import { EndUser } from './end-users.ts';
import {
  EnvironmentName,
  Id,
  ListQuery,
  Metadata,
  Name,
  Nullable,
  OneOf,
  Page,
  type Static,
  Strict,
  Timestamp,
  Type,
} from './schema.ts';
import { SessionError, SessionStatus, StopReason } from './session-state.ts';
import { Budget, Content } from './sessions.ts';

/**
 * Whether a schedule opens sessions.
 *
 * - `enabled`: it opens the next one at `nextAt`. → paused
 * - `paused`: it opens none; times that pass while it is paused are not made up for. → enabled
 */
export const scheduleStatuses = ['enabled', 'paused'] as const;

/**
 * The status of a run.
 *
 * - `opened`: a session was opened.
 * - `missed`: the service was not running at its time, and a later run became due before the service was back.
 * - `failed`: the session was refused, for example because the agent is archived; there is no retry.
 */
export const scheduleRunStatuses = ['opened', 'missed', 'failed'] as const;
const ScheduleRunStatus = OneOf(scheduleRunStatuses, {
  title: 'ScheduleRunStatus',
  description:
    '`opened`: a session was opened. `missed`: the service was not running, and a later run became due before it was back. `failed`: the session could not be opened.',
});

const runFields = {
  scheduledAt: Type.Unsafe<string>({
    ...Timestamp,
    description: 'When it was due; of a manual run, when it was started. Different for each run.',
  }),
  manual: Type.Boolean({ description: 'Whether a caller started it, instead of its time.' }),
  status: ScheduleRunStatus,
  sessionId: Nullable(Id('ses'), { description: 'The session that was opened; null unless `opened`.' }),
  session: Nullable(
    Type.Object(
      {
        status: SessionStatus,
        stopReason: Nullable(StopReason, { description: 'Why its last turn ended; null before.' }),
        error: Nullable(SessionError, { description: 'Why its last turn failed, until the next one starts.' }),
      },
      { title: 'ScheduleRunSession' },
    ),
    {
      description:
        'How that session is now; null if it was deleted, or if the caller cannot read it: that needs `sessions:read`.',
    },
  ),
  error: Nullable(SessionError, { description: 'Why no session could be opened; null unless `failed`.' }),
};

/** How many of the newest runs of a schedule `failedRuns` counts. */
export const maxFailedRuns = 10;

/** A run of a schedule: what happened at one of its times. Kept for 90 days; the newest one is kept as long as the schedule. */
export const ScheduleRun = Type.Object(
  {
    ...runFields,
    createdAt: Type.Unsafe<string>({ ...Timestamp, description: 'When the service processed it.' }),
  },
  { title: 'ScheduleRun' },
);
export type ScheduleRun = Static<typeof ScheduleRun>;

const Input = Nullable(Content, {
  description: 'The first message of each session; null: it is opened idle, without a turn.',
});
const ScheduleName = Nullable(Name, {
  description: 'For people; several schedules can have the same. null: it has none.',
});
const Cron = Nullable(Type.String({ minLength: 1, maxLength: 200, examples: ['0 9 * * 1-5'] }), {
  description:
    'Five fields: minute, hour, day of month, month, day of week; `*`, lists, ranges and `*/n` steps, names (`JAN`, `MON`), 0 and 7 for Sunday, `L` (last), `15W` (nearest weekday), `MON#2` (second Monday). If both days are given, one of them must match; with `+` before the day of week, both must. Exactly one of `cron` and `at` is required.',
});
const Timezone = Nullable(Type.String({ minLength: 1, maxLength: 100, examples: ['Europe/Berlin'] }), {
  description:
    'The time zone of `cron`: an IANA name such as `Europe/Berlin`, or `UTC`, the default. When clocks change, a time of day that does not exist runs at the end of the gap, and one that occurs twice runs the first time; a pattern with a wildcard or step in minute or hour follows the clock. null with `at`.',
});
const At = Nullable(Timestamp, {
  description:
    'The time at which it opens its only session, in the future. Exactly one of `cron` and `at` is required.',
});
const Status = OneOf(scheduleStatuses, {
  title: 'ScheduleStatus',
  description:
    '`paused` opens nothing. When it is enabled again, it continues from that moment; times that have passed are not made up for.',
});
const CloseOnIdle = Type.Boolean({
  description: 'Whether each session is completed when its turn ends and no message is queued. Default: true.',
});
const ScheduleMetadata = Type.Unsafe<Static<typeof Metadata>>({
  ...Metadata,
  description: 'Values of your own, set on each session that it opens.',
});

export const Schedule = Type.Object(
  {
    scheduleId: Id('sch'),
    name: ScheduleName,
    agentId: Id('agt'),
    environment: EnvironmentName,
    input: Input,
    metadata: ScheduleMetadata,
    endUser: Nullable(EndUser, { description: 'End user of each session.' }),
    budget: Nullable(Budget, { description: 'Budget of each session.' }),
    cron: Cron,
    timezone: Timezone,
    at: At,
    status: Status,
    closeOnIdle: CloseOnIdle,
    nextAt: Nullable(Timestamp, { description: 'When it opens its next session; null: paused, or `at` has passed.' }),
    lastRun: Nullable(Type.Object(runFields, { title: 'LastScheduleRun' }), {
      description: 'The newest run; null before the first.',
    }),
    failedRuns: Type.Integer({
      minimum: 0,
      maximum: maxFailedRuns,
      description: `How many runs have failed since one succeeded, among the newest ${maxFailedRuns}: no session could be opened, or the last turn of the session failed. Runs that were missed, are in progress or were cancelled, and those whose session was deleted or cannot be read by the caller, count neither way.`,
    }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: 'Schedule' },
);
export type Schedule = Static<typeof Schedule>;

const settable = {
  name: Type.Optional(ScheduleName),
  input: Type.Optional(Input),
  metadata: Type.Optional(ScheduleMetadata),
  endUser: Type.Optional(Nullable(EndUser, { description: 'End user of each session.' })),
  budget: Type.Optional(Nullable(Budget, { description: 'Budget of each session.' })),
  cron: Type.Optional(Cron),
  timezone: Type.Optional(Timezone),
  at: Type.Optional(At),
  status: Type.Optional(Status),
  closeOnIdle: Type.Optional(CloseOnIdle),
};
export const CreateSchedule = Strict(
  { agentId: Id('agt'), environment: EnvironmentName, ...settable },
  {
    title: 'CreateSchedule',
    'x-shapes': [
      { requires: ['cron'], excludes: ['at'] },
      { requires: ['at'], excludes: ['cron', 'timezone'] },
    ] satisfies Shape[],
  },
);
export const UpdateSchedule = Strict(
  { agentId: Type.Optional(Id('agt')), environment: Type.Optional(EnvironmentName), ...settable },
  {
    title: 'UpdateSchedule',
    'x-shapes': [{ excludes: ['at'] }, { excludes: ['cron', 'timezone'] }] satisfies Shape[],
    description:
      'A change of `cron`, `timezone`, `at` or `status` takes effect from now on: a run that is due but not yet processed is dropped. To switch between the two, send `cron: null` with `at`, or `at: null` with `cron`.',
  },
);
export const ScheduleParams = Strict({ scheduleId: Id('sch') });
export const ListSchedules = ListQuery({
  agentId: Type.Optional(Id('agt')),
  environment: Type.Optional(EnvironmentName),
  status: Type.Optional(Status),
});
export const ListScheduleRuns = ListQuery({
  status: Type.Optional(ScheduleRunStatus),
  hasError: Type.Optional(
    Type.Boolean({
      description:
        '`true`: only runs that opened no session, or whose session failed in its last turn. A page is found among a thousand runs, so it can have fewer than `limit`, or none, although there are more.',
    }),
  ),
});
export const SchedulePage = Page(Schedule);
export const ScheduleRunPage = Page(ScheduleRun);

/** The most times that a preview can have: rare ones take milliseconds each to find. */
const MOST_PREVIEWED = 10;

export const PreviewSchedule = Strict({
  cron: Type.String({ minLength: 1, maxLength: 200, examples: ['0 9 * * 1-5'], description: 'As in a schedule.' }),
  timezone: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      default: 'UTC',
      examples: ['Europe/Berlin'],
      description: 'As in a schedule.',
    }),
  ),
  count: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MOST_PREVIEWED, default: 5, description: 'How many times.' }),
  ),
});
export const SchedulePreview = Type.Object(
  { times: Type.Array(Timestamp, { description: 'The next times, earliest first; fewer if there are no more.' }) },
  { title: 'SchedulePreview' },
);
