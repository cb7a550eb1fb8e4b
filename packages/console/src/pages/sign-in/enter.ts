import { useRouter } from '@tanstack/react-router';

/** Returns a function that opens the page the user asked for if it belongs to the console, else the first page. */
export function useEnter(): (from: string | undefined) => void {
  const { history } = useRouter();
  return (from) => history.push(consolePath(from));
}

/** The path of that page of the console, or of its first page if `from` is an address elsewhere. */
export function consolePath(from: string | undefined): string {
  // An address of another site begins with a scheme, or with two slashes of either kind.
  return `/console${from !== undefined && /^\/[^/\\]/.test(from) ? from : '/'}`;
}
