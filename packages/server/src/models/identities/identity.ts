// What the identities of all clouds have in common.
import { readFile } from 'node:fs/promises';
import type { OrganizationEgress } from '../../egress/egress.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdentityVariables } from '../../vault/cloud-identities.ts';
import { type AccessToken, isToken } from '../keys/access-tokens.ts';
import { ModelFailure } from '../model/model.ts';
import type { ProviderKey } from '../model/provider-key.ts';
import type { MachineCloud } from './machine.ts';
import type { Metadata } from './metadata.ts';

/** The identity that this machine has at a cloud. */
export interface CloudIdentity {
  /** What a token is for, and so what it can't be shared with. `baseUrl`: the server that is called. */
  audienceOf(baseUrl: URL, variables: IdentityVariables): string;
  /** Where it may be, in the order in which the cloud's own libraries look. The first that is here is used, and no other. */
  readonly sources: readonly IdentitySource[];
  /** For the operator: that there is no source, and what would be one. */
  readonly none: string;
  /** Makes a token the key of a request. Throws `ModelFailure`, whose message is for everyone. */
  keyOf(token: ProviderKey, server: { baseUrl: URL; clock: Pick<Clock, 'now'> }): Promise<ProviderKey>;
}

export interface IdentitySource {
  isHere(variables: IdentityVariables, machine: MachineCloud | undefined): boolean;
  /** What the operator checks if it gives no token: the variable that says that it is here, or what else does. */
  readonly mark: string;
  /** Throws `ModelFailure`, whose message is for the operator: it may name files and codes of errors, but has no token. */
  request(context: IdentityContext, audience: string): Promise<AccessToken>;
}

export interface IdentityContext {
  readonly variables: IdentityVariables;
  readonly egress: OrganizationEgress;
  readonly metadata: Metadata;
  /** In milliseconds since 1970. */
  readonly now: number;
}

/** There is no such identity here, or it is described wrongly. */
export function unusable(why: string): ModelFailure {
  return new ModelFailure('model_key_missing', why, { retryable: false });
}

/** The text of a file. `what`: as the operator knows it, such as the name of the variable with its path. */
export async function textOf(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw unusable(`${what} can’t be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`);
  }
}

/** The token in a file. It is read for each use, because the cluster replaces it before its end. */
export async function tokenInFile(path: string, what: string): Promise<string> {
  const token = (await textOf(path, what)).trim();
  if (!isToken(token)) throw unusable(`${what} has no token in it`);
  return token;
}
