// Who created a key: approvals count a person and their keys as one approver (approvals/approvers.ts).
import { ApiError } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { identitiesOf } from '../lib/identities.ts';

// Each request with the key reads them, and each approval compares them.
const MAX_CREATORS = 50;

/** The caller, the creator of its key, and so on. 409 `conflict` if these are too many. */
export function creatorsOf(ctx: Context): string[] {
  const creators = [...identitiesOf(ctx), ...(ctx.keyCreatedBy ?? [])];
  if (creators.length <= MAX_CREATORS) return creators;
  throw new ApiError(
    'conflict',
    `This key is the last of ${MAX_CREATORS} that created one another. Create the new key with another key, or in the console.`,
  );
}
