// All commands, in the order of the help.
import type { Noun } from './command.ts';

const host = 'On the host of the service';
const work = 'Agents and sessions (with an API key: `signalbox login`, or SIGNALBOX_API_KEY)';
const admin = 'Settings (with an API key; `keys create` also works on the host without one)';
const watch = 'Insight (with an API key)';
const shell = 'On this machine';

export const nouns: readonly Noun[] = [
  {
    name: 'start',
    summary: 'Run the service',
    group: host,
    load: async () => (await import('./commands/start.ts')).commands,
  },
  {
    name: 'users',
    summary: 'Manage who can sign in to the console',
    group: host,
    load: async () => (await import('./commands/users.ts')).commands,
  },
  {
    name: 'organizations',
    summary: 'List and create organizations',
    group: host,
    load: async () => (await import('./commands/organizations.ts')).commands,
  },
  {
    name: 'doctor',
    summary: 'Check an installation, and say what is wrong',
    group: host,
    load: async () => (await import('./commands/doctor.ts')).commands,
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
    name: 'agents',
    summary: 'Create, change and compare agents',
    group: work,
    load: async () => (await import('./commands/agents.ts')).commands,
  },
  {
    name: 'sessions',
    summary: 'Open, watch, continue and stop sessions; talk with agents',
    group: work,
    load: async () => (await import('./commands/sessions.ts')).commands,
  },
  {
    name: 'approvals',
    summary: 'List, approve and deny tool calls',
    group: work,
    load: async () => (await import('./commands/approvals.ts')).commands,
  },
  {
    name: 'schedules',
    summary: 'Open sessions at set times',
    group: work,
    load: async () => (await import('./commands/schedules.ts')).commands,
  },
  {
    name: 'files',
    summary: 'Upload, list, download and delete files',
    group: work,
    load: async () => (await import('./commands/files.ts')).commands,
  },
  {
    name: 'end-users',
    summary: 'Show and erase end users, and create tokens for their browsers',
    group: work,
    load: async () => (await import('./commands/end-users.ts')).commands,
  },
  {
    name: 'environments',
    summary: 'Manage environments, and how long they keep sessions',
    group: admin,
    load: async () => (await import('./commands/environments.ts')).commands,
  },
  {
    name: 'secrets',
    summary: 'Set and delete the secrets of environments',
    group: admin,
    load: async () => (await import('./commands/secrets.ts')).commands,
  },
  {
    name: 'webhooks',
    summary: 'Subscribe to webhooks, test and recover them',
    group: admin,
    load: async () => (await import('./commands/webhooks.ts')).commands,
  },
  {
    name: 'deliveries',
    summary: 'Inspect and resend webhook deliveries',
    group: admin,
    load: async () => (await import('./commands/deliveries.ts')).commands,
  },
  {
    name: 'destinations',
    summary: 'Send records of the event log to your systems',
    group: admin,
    load: async () => (await import('./commands/destinations.ts')).commands,
  },
  {
    name: 'keys',
    summary: 'Create, limit, rotate and revoke API keys',
    group: admin,
    load: async () => [
      ...(await import('./commands/keys.ts')).commands,
      ...(await import('./commands/master-key.ts')).commands,
    ],
  },
  {
    name: 'organization',
    summary: 'Show the organization, and allow web pages',
    group: admin,
    load: async () => (await import('./commands/organization.ts')).commands,
  },
  {
    name: 'overview',
    summary: 'Show what is happening now',
    group: watch,
    load: async () => (await import('./commands/overview.ts')).commands,
  },
  {
    name: 'budgets',
    summary: 'Set and list budgets in US dollars',
    group: admin,
    load: async () => (await import('./commands/budgets.ts')).commands,
  },
  {
    name: 'analytics',
    summary: 'Show sessions, errors, latencies and deliveries over time',
    group: watch,
    load: async () => (await import('./commands/analytics.ts')).commands,
  },
  {
    name: 'usage',
    summary: 'Show tokens, model calls and cost',
    group: watch,
    load: async () => (await import('./commands/usage.ts')).commands,
  },
  {
    name: 'events',
    summary: 'Read, export and verify the event log',
    group: watch,
    load: async () => (await import('./commands/events.ts')).commands,
  },
  {
    name: 'listen',
    summary: "Receive an environment's webhooks on this machine",
    group: watch,
    load: async () => (await import('./commands/listen.ts')).commands,
  },
  {
    name: 'trigger',
    summary: 'Trigger a test event',
    group: watch,
    load: async () => (await import('./commands/trigger.ts')).commands,
  },
  {
    name: 'whoami',
    summary: 'Show which key is used, and what it can do',
    group: watch,
    load: async () => (await import('./commands/whoami.ts')).commands,
  },
  {
    name: 'login',
    summary: 'Store an API key, and use it from now on',
    group: shell,
    load: async () => (await import('./commands/login.ts')).commands,
  },
  {
    name: 'logout',
    summary: 'Forget a stored API key',
    group: shell,
    load: async () => (await import('./commands/logout.ts')).commands,
  },
  {
    name: 'profiles',
    summary: 'List and select stored API keys',
    group: shell,
    load: async () => (await import('./commands/profiles.ts')).commands,
  },
  {
    name: 'completion',
    summary: 'Complete commands in bash, zsh or fish',
    group: shell,
    load: async () => (await import('./commands/completion.ts')).commands,
  },
];
