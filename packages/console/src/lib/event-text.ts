// An event in plain words: who did what. The event itself lists its changes.
import type { Event, EventType } from '@signalbox/client';
import { counted } from './text-format.ts';

interface Kind {
  /** Its name in the filter. */
  label: string;
  /** What the actor did. `said` is for events without an actor. */
  did?: string;
  said?: string;
}

/** Every event type, in the order of the filter. */
export const eventKinds: Record<EventType, Kind> = {
  'api_key.created': { label: 'API key created', did: 'created an API key' },
  'api_key.updated': { label: 'API key changed', did: 'changed an API key' },
  'api_key.rotated': { label: 'API key rotated', did: 'rotated the secret of an API key' },
  'api_key.old_secret_deleted': { label: 'Old API key secret ended', did: 'ended the old secret of an API key' },
  'api_key.deleted': { label: 'API key deleted', did: 'deleted an API key' },
  'agent.created': { label: 'Agent created', did: 'created an agent' },
  'agent.updated': { label: 'Agent changed', did: 'changed an agent' },
  'agent.archived': { label: 'Agent archived', did: 'archived an agent' },
  'agent.tool_tested': { label: 'Tool tested', did: 'sent a test request of the tool' },
  'session_token.created': { label: 'Session token created', did: 'created a session token' },
  'environment.created': { label: 'Environment created', did: 'created an environment' },
  'environment.updated': { label: 'Environment changed', did: 'changed an environment' },
  'environment.deleted': { label: 'Environment deleted', did: 'deleted an environment' },
  'environment_secret.set': { label: 'Secret set', did: 'set a secret' },
  'environment_secret.deleted': { label: 'Secret deleted', did: 'deleted a secret' },
  'session.created': { label: 'Session opened', did: 'opened a session' },
  'session.forked': { label: 'Session forked', did: 'forked a session' },
  'session.updated': { label: 'Session metadata changed', did: 'changed the metadata of a session' },
  'session.interrupted': { label: 'Session interrupted', did: 'interrupted a session' },
  'session.retried': { label: 'Turn retried', did: 'retried a failed turn' },
  'session.compaction_requested': { label: 'Session compacted', did: 'compacted a session' },
  'session.closing': { label: 'Session closed', did: 'closed a session' },
  'session.deleted': { label: 'Session deleted', did: 'deleted a session and all of its data' },
  'session.shared': { label: 'Session shared', did: 'created a link that shows a session to anyone' },
  'session.share_revoked': { label: 'Share link revoked', did: 'revoked a share link of a session' },
  'session.waiting': { label: 'Session waiting', said: 'A session is waiting' },
  'session.idle': { label: 'Session idle', said: 'A session finished its turn' },
  'session.completed': { label: 'Session completed', said: 'A session was completed' },
  'session.failed': { label: 'Session failed', said: 'A session failed' },
  'session.cancelled': { label: 'Session cancelled', did: 'cancelled a session', said: 'A session was cancelled' },
  'turn.failed': { label: 'Turn failed', said: 'A turn failed' },
  'file.created': { label: 'File created', did: 'uploaded a file', said: 'A tool created a file' },
  'file.deleted': { label: 'File deleted', did: 'deleted a file' },
  'tool_call.outcome_unknown': {
    label: 'Tool call outcome unknown',
    said: 'A tool call was interrupted and its outcome is unknown',
  },
  'tool_server.unavailable': {
    label: 'Tool server unavailable',
    said: 'The tools of an MCP server are unavailable',
  },
  'tool_server.available': { label: 'Tool server available', said: 'The tools of an MCP server are available again' },
  'approval.requested': { label: 'Approval requested', said: 'An approval was requested' },
  'approval.decided': { label: 'Approval decided', did: 'approved a call that needs more approvers' },
  'approval.resolved': { label: 'Approval resolved', did: 'resolved an approval', said: 'An approval was resolved' },
  'end_user.erasure_started': { label: 'End user erasure started', did: 'started to erase an end user' },
  'end_user.erased': { label: 'End user erased', said: 'An end user was erased' },
  'schedule.created': { label: 'Schedule created', did: 'created a schedule' },
  'schedule.updated': { label: 'Schedule changed', did: 'changed a schedule' },
  'schedule.deleted': { label: 'Schedule deleted', did: 'deleted a schedule' },
  'schedule.opened': { label: 'Schedule opened a session', said: 'A schedule opened a session' },
  'schedule.missed': { label: 'Schedule missed', said: 'A schedule missed a run' },
  'schedule.failed': { label: 'Schedule failed', said: 'A schedule could not open its session' },
  'webhook_subscription.created': { label: 'Webhook created', did: 'created a webhook subscription' },
  'webhook_subscription.updated': { label: 'Webhook changed', did: 'changed a webhook subscription' },
  'webhook_subscription.deleted': { label: 'Webhook deleted', did: 'deleted a webhook subscription' },
  'webhook_subscription.secret_rotated': { label: 'Signing secret rotated', did: 'rotated a webhook signing secret' },
  'webhook_subscription.secret_confirmed': {
    label: 'Signing secret confirmed',
    said: 'A webhook receiver accepted the new signing secret',
  },
  'webhook_subscription.degraded': {
    label: 'Webhook degraded',
    said: 'A webhook receiver has been failing for a day',
  },
  'webhook_subscription.disabled': { label: 'Webhook disabled', said: 'A webhook subscription was disabled' },
  'webhook_subscription.enabled': { label: 'Webhook enabled', did: 'enabled a webhook subscription' },
  'webhook_delivery.exhausted': { label: 'Delivery exhausted', said: 'A webhook delivery ran out of retries' },
  'webhook_delivery.resent': { label: 'Delivery resent', did: 'resent a webhook delivery' },
  'webhook_delivery.recovered': { label: 'Deliveries recovered', did: 'resent webhooks from the journal' },
  'destination.created': { label: 'Destination created', did: 'created a destination' },
  'destination.updated': { label: 'Destination changed', did: 'changed a destination' },
  'destination.deleted': { label: 'Destination deleted', did: 'deleted a destination' },
  'destination.enabled': { label: 'Destination enabled', did: 'enabled a destination' },
  'destination.disabled': { label: 'Destination disabled', said: 'A destination was disabled' },
  'destination.degraded': { label: 'Destination degraded', said: 'A destination has been failing for a day' },
  'destination.secret_rotated': { label: 'Signing secret rotated', did: 'rotated the signing secret of a destination' },
  'destination.secret_confirmed': {
    label: 'Signing secret confirmed',
    said: 'A destination accepted the new signing secret',
  },
  'destination.recovered': { label: 'Records sent again', did: 'sent records again to a destination' },
  'budget.created': { label: 'Budget created', did: 'created a budget' },
  'budget.updated': { label: 'Budget changed', did: 'changed a budget' },
  'budget.deleted': { label: 'Budget deleted', did: 'deleted a budget' },
  'budget.threshold_reached': { label: 'Budget threshold reached', said: 'A budget reached a threshold' },
  'model.ending': { label: 'Model ending', said: 'The provider of a model has announced its end' },
  'organization.created': { label: 'Organization created', did: 'created the organization' },
  'organization.updated': { label: 'Organization changed', did: 'changed the organization' },
  'user.invited': { label: 'Person invited', did: 'invited a person' },
  'user.invitation_withdrawn': { label: 'Invitation withdrawn', did: 'withdrew an invitation' },
  'user.joined': { label: 'Person joined', did: 'joined' },
  'user.role_changed': { label: 'Role changed', did: "changed a member's role" },
  'user.can_decide_changed': { label: 'Right to decide changed', did: 'changed which approvals a member can decide' },
  'user.removed': { label: 'Person removed', did: 'removed a member' },
  'user.signed_in': { label: 'Signed in', did: 'signed in' },
  'user.sign_in_failed': { label: 'Sign-in failed', said: 'A sign-in failed' },
  'user.signed_out': { label: 'Signed out', did: 'signed out' },
  'user.password_reset_requested': { label: 'Password link created', did: 'created a password link' },
  'user.password_reset': { label: 'Password reset', did: 'set a new password with a link' },
  'user.password_changed': { label: 'Password changed', did: 'changed their password' },
  'user.passkey_added': { label: 'Passkey added', did: 'added a passkey' },
  'user.passkey_removed': { label: 'Passkey removed', did: 'removed a passkey' },
  'user.provider_connected': {
    label: 'Provider connected',
    did: "connected an account of the organization's sign-in provider",
  },
  'user.provider_disconnected': {
    label: 'Provider disconnected',
    did: "disconnected their account of the organization's sign-in provider",
  },
  'access.denied': { label: 'Access denied', did: 'was denied access' },
};

/** The names of agents by their ids: an event has only the id of what was changed. */
type Names = ReadonlyMap<string, string>;
const noNames: Names = new Map();

/** One sentence without a full stop: `Olga created an API key: billing service`. Names in it are user input. */
export function eventText(event: Event, names = noNames): string {
  const { type, actor } = event;
  // A newer service may write types that this page does not know.
  const kind: Kind | undefined = eventKinds[type];
  if (!kind) return `${actor.name}: ${type}`;
  if (!isBySelf(event, kind))
    return withParticular(`${actor.name} ${kind.did ?? kind.label}`, particularOf(event, names));
  // What happens in a session is recorded with its agent.
  return withParticular(kind.said!, particularOf(event, names), actor.type === 'agent' ? actor.name : '');
}

/** The text without the actor, which is next to it: `Created an API key: billing service`. */
export function actionText(event: Event, names = noNames): string {
  const { action, particular } = actionParts(event, names);
  return particular ? `${action}: ${particular}` : action;
}

/** The two parts of that text. */
export function actionParts(event: Event, names = noNames): { action: string; particular: string } {
  const kind: Kind | undefined = eventKinds[event.type];
  if (!kind) return { action: event.type, particular: '' };
  const particular = particularOf(event, names);
  if (isBySelf(event, kind)) return { action: kind.said!, particular };
  const did = kind.did ?? kind.label;
  return { action: did[0]!.toUpperCase() + did.slice(1), particular };
}

/** Whether it happened without the actor's doing. */
function isBySelf({ actor }: Event, { did, said }: Kind): boolean {
  return said !== undefined && (actor.type === 'system' || did === undefined);
}

function withParticular(sentence: string, particular: string, who = ''): string {
  const more = [who, particular].filter(Boolean).join(', ');
  return more ? `${sentence}: ${more}` : sentence;
}

/** The detail that identifies this event among others of its type, if it has one. */
function particularOf({ type, changes, resource, environment }: Event, names: Names): string {
  const after = (field: string) => wordOf(changes?.[field]?.[1]);
  switch (type) {
    case 'approval.resolved':
      return after('status');
    case 'approval.decided': {
      const progress = changes?.progress?.[1] as { approved: number; required: number } | undefined;
      return progress ? `${progress.approved} of ${progress.required}` : '';
    }
    case 'user.joined':
      return after('role');
    case 'access.denied':
      return [resource.id, after('code')].filter(Boolean).join(', ');
    case 'user.role_changed':
      return `${wordOf(changes?.role?.[0])} → ${after('role')}`;
    case 'webhook_subscription.disabled':
      return after('disabledReason') === 'gone' ? 'the receiver returned 410' : 'it failed for 5 days';
    case 'environment_secret.set':
    case 'environment_secret.deleted':
      return [after('name') || resource.id, environment].filter(Boolean).join(', ');
    case 'tool_server.unavailable':
    case 'tool_server.available':
      // `agt_…/name`
      return [resource.id?.split('/').at(-1), after('reason')].filter(Boolean).join(', ');
    case 'environment.updated':
      return [environment ?? resource.id, keptText(changes), limitsText(changes)].filter(Boolean).join(', ');
    case 'environment.created':
    case 'environment.deleted':
      return environment ?? resource.id;
    case 'agent.updated':
      return [after('name') || names.get(resource.id), changedText(changes)].filter(Boolean).join(', ');
    case 'agent.archived':
      return names.get(resource.id) ?? '';
    case 'agent.tool_tested':
      return resource.id;
    case 'webhook_subscription.updated':
    case 'schedule.updated':
    case 'api_key.updated':
    case 'organization.updated':
      return [after('name') || environment, changedText(changes)].filter(Boolean).join(', ');
    case 'budget.created':
    case 'budget.deleted':
      return resource.id;
    case 'budget.updated':
      return [resource.id, changedText(changes)].filter(Boolean).join(', ');
    case 'budget.threshold_reached':
      return [resource.id, changes?.threshold && `${after('threshold')}%`].filter(Boolean).join(', ');
    case 'model.ending':
      return [resource.id, `on ${after('endsAt')}`].join(', ');
    case 'turn.failed':
    case 'session.failed':
      return after('error');
    case 'session.retried':
      return wordOf(changes?.error?.[0]);
    default:
      if (type.startsWith('webhook_')) return environment ?? '';
      return after('name') || after('email') || after('role') || wordOf(changes?.name?.[0]);
  }
}

// More are counted.
const MOST_FIELDS = 3;

/** What was changed: `instructions, max steps`. */
function changedText(changes: Event['changes']): string {
  // Each change of an agent has the number of its version.
  const fields = Object.keys(changes ?? {}).filter((field) => field !== 'version');
  if (fields.length > MOST_FIELDS) return counted(fields.length, 'field');
  return fields.map((field) => field.replaceAll(/\p{Lu}/gu, (letter) => ` ${letter.toLowerCase()}`)).join(', ');
}

function keptText(changes: Event['changes']): string {
  const change = changes?.keepSessionsDays;
  if (!change) return '';
  const [, days] = change;
  return typeof days === 'number'
    ? `keeps ended sessions for ${counted(days, 'day')}`
    : 'keeps ended sessions for the operator’s default';
}

function limitsText(changes: Event['changes']): string {
  const after = changes?.modelLimits?.[1];
  if (!Array.isArray(after)) return '';
  return after.length === 0 ? 'has no limits for models' : `has ${counted(after.length, 'limit')} for models`;
}

function wordOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
