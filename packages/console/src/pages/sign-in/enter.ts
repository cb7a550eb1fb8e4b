import { router } from '../../router.tsx';

/** Goes to the page that the person wanted, if it is one of ours, else to the first. */
export function enter(from: string | undefined): void {
  // An address of another site begins with a scheme, or with two slashes of either kind.
  const path = from !== undefined && /^\/[^/\\]/.test(from) ? from : '/';
  router.history.push(`/console${path}`);
}
