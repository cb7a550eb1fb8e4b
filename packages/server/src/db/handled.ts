/**
 * Keeps a rejection from ending the process. If several statements are started together and starting one throws, the earlier ones are not
 * waited for. A rejection of one of them would end the process, with all its sessions, although the caller fails anyway. A caller that
 * waits still gets it.
 */
export function handled<T>(result: Promise<T>): Promise<T> {
  result.catch(() => {});
  return result;
}
