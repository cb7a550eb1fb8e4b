// Names that a server accepts, in place of names that it refuses. A name follows from what it replaces, so it stays the same in a
// growing transcript.
import { createHash } from 'node:crypto';
import type { Target } from '../model/targets.ts';
import { toolRulesOf } from './rules.ts';

const MAX_CHARACTERS = 64;
const DIGEST_CHARACTERS = 8;

/**
 * The name of a tool as the server accepts it, also of one that the agent does not have: a model can ask for any. A name that had to be
 * changed ends in a digest of itself, so it is not the name of another tool.
 */
export function nameFor(target: Target, name: string): string {
  const { name: allowed, reserved = [] } = toolRulesOf(target);
  return allowed.test(name) && !reserved.includes(name) ? name : withDigest(name, allowed);
}

/**
 * By which name each property is sent whose own name the server refuses. As short as possible: the model reads it, and learns from the
 * schema what it stands for. `besideKeys`: names that could be taken for others if they were short.
 */
export function propertyNames(
  names: ReadonlySet<string>,
  besideKeys: ReadonlySet<string>,
  allowed: RegExp,
): Map<string, string> {
  const sent = new Map<string, string>();
  const refused = [...names].filter((name) => !allowed.test(name));
  const uses = new Map<string, number>();
  for (const short of refused.map((name) => shortName(name, allowed))) uses.set(short, (uses.get(short) ?? 0) + 1);
  for (const name of refused) {
    const short = shortName(name, allowed);
    const isClear = uses.get(short) === 1 && !names.has(short) && !besideKeys.has(name);
    sent.set(name, isClear ? short : withDigest(name, allowed));
  }
  return sent;
}

/** May be that of another as well. */
function shortName(name: string, allowed: RegExp): string {
  const text = withoutRefused(name, allowed).replace(/^_+|_+$/g, '');
  return allowed.test(text) ? text : withDigest(name, allowed);
}

function withDigest(name: string, allowed: RegExp): string {
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_CHARACTERS);
  const beginning = withoutRefused(name, allowed).slice(0, MAX_CHARACTERS - DIGEST_CHARACTERS - 2);
  const text = `${beginning.replace(/_+$/, '')}_${digest}`;
  return allowed.test(text) ? text : `_${text}`;
}

function withoutRefused(name: string, allowed: RegExp): string {
  const isAllowed = (character: string) => allowed.test(`a${character}`);
  return [...name]
    .map((character) => (isAllowed(character) ? character : '_'))
    .join('')
    .replace(/__+/g, '_');
}
