// Whom the record of an idempotent request (idempotency.ts) is about: the sessions, files and end users that the request and its response
// name. The erasure of an end user finds by them what it has to delete (erase-responses.ts).
import { parseId } from '../lib/ids.ts';

/** How deep a response names resources: `{ session: { leftOut: { refusedFiles: [{ fileId }] } } }`. A test compares it with the contract. */
export const SUBJECT_DEPTH = 4;

/** The fields that name a subject, in a body, a response or a path. */
export const subjectFields = ['sessionId', 'fileId', 'endUser', 'endUserId'] as const;

interface Named {
  /** The path of the URL. */
  path: string;
  body: unknown;
}

/** Without a response, what the request alone names. */
export function subjectsOf({ path, body }: Named, response?: unknown): string[] {
  const found = new Set<string>();
  for (const part of path.split('/')) if (parseId('ses', part) ?? parseId('file', part)) found.add(part);
  collect(found, body, 1);
  collect(found, response, SUBJECT_DEPTH);
  return [...found];
}

/** In the form in which records have it. */
export function endUserSubject(endUserId: string): string {
  return `end_user:${endUserId}`;
}

function collect(found: Set<string>, value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null || depth === 0) return;
  if (Array.isArray(value)) {
    for (const item of value) collect(found, item, depth);
    return;
  }
  for (const [name, inner] of Object.entries(value)) {
    const id = subjectIn(name, inner);
    if (id === undefined) collect(found, inner, depth - 1);
    else found.add(id);
  }
}

function subjectIn(name: string, value: unknown): string | undefined {
  switch (name as (typeof subjectFields)[number]) {
    case 'sessionId':
    case 'fileId':
      return typeof value === 'string' ? value : undefined;
    case 'endUserId':
      return typeof value === 'string' ? endUserSubject(value) : undefined;
    case 'endUser': {
      const { id } = (value ?? {}) as { id?: unknown };
      return typeof id === 'string' ? endUserSubject(id) : undefined;
    }
    default:
      return undefined;
  }
}
