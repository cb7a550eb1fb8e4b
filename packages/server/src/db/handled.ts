/**
 * Of several statements that are started together, none is waited for if starting another one throws. The rejection of the first would
 * then end the process, with all its sessions, although its caller fails anyway. A caller that waits still gets it.
 */
export function handled<T>(result: Promise<T>): Promise<T> {
  result.catch(() => {});
  return result;
}
