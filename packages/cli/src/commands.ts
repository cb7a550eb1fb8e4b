// All commands, in the order of the help.
import type { Noun } from './command.ts';

const host = 'On the host of the service';
const api = 'From anywhere, with an API key in SIGNALBOX_API_KEY';

export const nouns: readonly Noun[] = [
  {
    name: 'start',
    summary: 'Run the service',
    group: host,
    load: async () => (await import('./commands/start.ts')).commands,
  },
  {
    name: 'keys',
    summary: 'Create API keys',
    group: host,
    load: async () => [
      ...(await import('./commands/keys.ts')).commands,
      ...(await import('./commands/master-key.ts')).commands,
    ],
  },
  {
    name: 'users',
    summary: 'Manage who can sign in to the console',
    group: host,
    load: async () => (await import('./commands/users.ts')).commands,
  },
  {
    name: 'backup',
    summary: 'Save the database in a file',
    group: host,
    load: async () => (await import('./commands/backup.ts')).commands,
  },
  {
    name: 'restore',
    summary: 'Create the database of a backup',
    group: host,
    load: async () => (await import('./commands/restore.ts')).commands,
  },
  {
    name: 'move',
    summary: 'Move the embedded database to another PostgreSQL',
    group: host,
    load: async () => (await import('./commands/move.ts')).commands,
  },
  {
    name: 'database',
    summary: 'Shard the database by organization',
    group: host,
    load: async () => (await import('./commands/database.ts')).commands,
  },
  {
    name: 'sessions',
    summary: 'List, watch, message and stop sessions',
    group: api,
    load: async () => (await import('./commands/sessions.ts')).commands,
  },
  {
    name: 'approvals',
    summary: 'List, approve and deny tool calls',
    group: api,
    load: async () => (await import('./commands/approvals.ts')).commands,
  },
  {
    name: 'schedules',
    summary: 'List, pause and enable schedules',
    group: api,
    load: async () => (await import('./commands/schedules.ts')).commands,
  },
  {
    name: 'files',
    summary: 'Upload, list, download and delete files',
    group: api,
    load: async () => (await import('./commands/files.ts')).commands,
  },
  {
    name: 'end-users',
    summary: 'Show and erase end users',
    group: api,
    load: async () => (await import('./commands/end-users.ts')).commands,
  },
  {
    name: 'events',
    summary: 'Verify the event log of a service or an exported file',
    group: api,
    load: async () => (await import('./commands/events.ts')).commands,
  },
  {
    name: 'listen',
    summary: "Receive an environment's webhooks on this machine",
    group: api,
    load: async () => (await import('./commands/listen.ts')).commands,
  },
  {
    name: 'trigger',
    summary: 'Cause a test event',
    group: api,
    load: async () => (await import('./commands/trigger.ts')).commands,
  },
];
