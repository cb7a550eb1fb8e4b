import { useRouter } from '@tanstack/react-router';

/** Returns a function that opens the page the user asked for if it belongs to the console, else the first page. */
export function useEnter(): (from: string | undefined) => void {
  const { history } = useRouter();
  return (from) => {
    // An address of another site begins with a scheme, or with two slashes of either kind.
    const path = from !== undefined && /^\/[^/\\]/.test(from) ? from : '/';
    history.push(`/console${path}`);
  };
}
