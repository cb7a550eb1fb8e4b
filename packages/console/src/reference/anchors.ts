// Short links into the reference: `/docs#openSession` for an operation, and `/docs#not_found` for an error code, which is the `type`
// of a Problem.
import type { OpenApiDocument } from './document.ts';

/** What a fragment names; undefined if it is not valid, which Scalar does not expect. */
export function nameIn(hash: string): string | undefined {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return undefined;
  }
}

export function isCodeIn({ components }: OpenApiDocument, name: string): boolean {
  return Object.hasOwn(components.examples, name);
}

/** The fragment that Scalar gives to an operation. */
export function slugOf({ paths }: OpenApiDocument, operationId: string): string | undefined {
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (operation.operationId !== operationId) continue;
      const tag = operation.tags[0]!.toLowerCase().replaceAll(' ', '-');
      return `tag/${tag}/${method.toUpperCase()}${path}`;
    }
  }
  return undefined;
}

/** Scrolls to the row of an error code, as soon as the table is there, and marks it. */
export function scrollToCode(code: string): void {
  const find = () => {
    const cells = document.querySelectorAll('td:first-child code');
    const row = [...cells].find(({ textContent }) => textContent === code)?.closest('tr');
    row?.classList.add('wanted');
    row?.scrollIntoView({ block: 'center' });
    return row;
  };
  if (find()) return;
  const observer = new MutationObserver(() => find() && observer.disconnect());
  observer.observe(document.body, { childList: true, subtree: true });
}
