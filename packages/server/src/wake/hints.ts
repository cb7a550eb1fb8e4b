// What a wake-up contains, and how it is sent between nodes.
import { bytesOfUuid, uuidOfBytes } from '../lib/ids.ts';

/** A session and its organization. */
export interface SessionHint {
  organizationId: string;
  sessionId: string;
}

/** What one commit added to a journal: at least one segment, and where the journal ended before. */
export interface JournalCommit {
  previous: { turn: number; seq: number };
  segments: readonly { turn: number; seqFrom: number; seqTo: number; body: string; createdAt: Date }[];
}

/**
 * - `runnable`: the session may be claimed
 * - `inbox`: the session's inbox has a new entry for the node that runs it, or that node lost the session
 * - `journal`: chunks were committed to the session. `isText`: only of a response under way, so other nodes get the hint if they follow
 *   it (followers.ts). `commit` and `isText` are not sent to other nodes
 * - `child`: the session has ended, and its result has to be reported to its parent
 * - `offered`: a worker may claim a step of the session
 * - `available`: a model that was unavailable responds; `model` is a hash of what names it (models/availability.ts)
 * - `limits`: the limits of an environment for its models changed
 * - `subscription`: a webhook subscription or a destination of the organization changed
 * - `access`: an API key, or a person's sign-ins or role, changed
 */
export interface Hints {
  runnable: SessionHint;
  inbox: SessionHint;
  journal: SessionHint & { environment: string; isText?: boolean; commit?: JournalCommit };
  child: SessionHint;
  offered: SessionHint & { queue: string };
  available: { organizationId: string; model: string };
  limits: { organizationId: string };
  subscription: { organizationId: string };
  access: { callerId: string };
}

export type Topic = keyof Hints;

/** What is sent besides hints: a node asks another one for the hints of a session's or an environment's text (followers.ts). */
export const FOLLOW = 'follow';
export type Message = Topic | typeof FOLLOW;

/** The fields of all hints, and those of some topics only. */
export interface AnyHint {
  organizationId?: string;
  sessionId?: string;
  callerId?: string;
  environment?: string;
  queue?: string;
  model?: string;
}

// The fourth part is what a topic has besides the session; none of the four contains a space, a colon or a comma.
const NAMED_BY = new Map<string, 'environment' | 'queue' | 'model'>([
  ['journal', 'environment'],
  [FOLLOW, 'environment'],
  ['offered', 'queue'],
  ['available', 'model'],
]);

/** Hints to send to a node or to all, without duplicates, grouped by everything except their session (or caller). */
export class HintBatch {
  readonly #groups = new Map<string, Set<string>>();

  add(topic: Message, hint: AnyHint): void {
    const name = NAMED_BY.get(topic);
    const group = `${topic}:${hint.organizationId ?? ''}:${name ? hint[name] : ''}`;
    const subject = hint[subjectOf(topic)] ?? '';
    const subjects = this.#groups.get(group);
    if (subjects) subjects.add(subject);
    else this.#groups.set(group, new Set([subject]));
  }

  /** Texts of at most `maxBytes` that begin with `origin` and together contain every hint. */
  payloads(origin: string, maxBytes: number): string[] {
    const payloads: string[] = [];
    let payload = origin;
    for (const [group, subjects] of this.#groups) {
      const [topic, organizationId = '', name] = group.split(':');
      const prefix = ` ${topic}:${pack(organizationId)}:${name}:`;
      let isOpen = false;
      for (const subject of subjects) {
        const packed = pack(subject);
        // All of it is ASCII: a character is a byte.
        if (payload.length + prefix.length + packed.length > maxBytes) {
          payloads.push(payload);
          payload = origin;
          isOpen = false;
        }
        payload += isOpen ? `,${packed}` : `${prefix}${packed}`;
        isOpen = true;
      }
    }
    payloads.push(payload);
    return payloads;
  }
}

/** Reads a payload; the caller narrows the topic, since a newer node may have topics that are unknown here. */
export function readPayload(payload: string): { origin: string; hints: { topic: string; hint: AnyHint }[] } {
  const [origin = '', ...groups] = payload.split(' ');
  const hints = groups.flatMap((group) => {
    const [topic = '', organization = '', name = '', subjects = ''] = group.split(':');
    const named = NAMED_BY.get(topic);
    const shared = {
      ...(organization !== '' && { organizationId: unpack(organization) }),
      ...(named && { [named]: name }),
    };
    return subjects.split(',').map((subject) => ({
      topic,
      hint: subject === '' ? shared : { ...shared, [subjectOf(topic)]: unpack(subject) },
    }));
  });
  return { origin, hints };
}

/** The first word of a node's payloads. */
export function originOf(nodeId: string): string {
  return pack(nodeId);
}

/** The node; of release 0.1, which sends a random word, no id of a node. */
export function nodeOf(origin: string): string {
  return origin.length === PACKED_LENGTH ? unpack(origin) : origin;
}

/** What each hint of a topic names. */
function subjectOf(topic: string): 'sessionId' | 'callerId' {
  return topic === 'access' ? 'callerId' : 'sessionId';
}

const PACKED_LENGTH = 22;

/** 22 characters for the 36 of a UUID. */
function pack(uuid: string): string {
  return uuid === '' ? '' : bytesOfUuid(uuid).toString('base64url');
}

function unpack(packed: string): string {
  return uuidOfBytes(Buffer.from(packed, 'base64url'));
}
