/** Values without a schema. A web page that imports one of them does not load the schemas. */
import type { ChunkType } from './chunks.ts';
import type { Role } from './people.ts';

/** The codes of errors that are fixed by setting a secret of the session's environment: the key of the agent's model. */
export const modelKeyErrors = ['model_key_missing', 'model_key_rejected'] as const;

/** The roles that can decide approvals at all. */
export const decidingRoles = ['approver', 'member', 'admin', 'owner'] as const satisfies readonly Role[];

/** The roles whose decisions can't be limited: they could lift the limit, or create a key without it. */
export const unlimitedRoles: readonly Role[] = ['admin', 'owner'];

/** The largest file, in bytes. */
export const maxFileBytes = 32 * 1024 * 1024;

/** What `message.reset` voids. A reader of any of these types also gets `message.reset`. */
export const voidableChunkTypes = [
  'step.started',
  'message.started',
  'message.chunk',
  'reasoning.chunk',
  'tool.input.chunk',
] as const satisfies readonly ChunkType[];
