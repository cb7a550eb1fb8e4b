// The command that continues a turn without what its provider refuses.
import type { RetryWithout } from '@signalbox/client';

/** `signalbox sessions retry ses_… --without-file file_…`. If it is one of several, all are named: one may be enough. */
export function retryCommand(sessionId: string, { fileIds = [], messageIds = [], tools = [] }: RetryWithout): string {
  const options = [
    ...fileIds.map((id) => `--without-file ${id}`),
    ...messageIds.map((id) => `--without-message ${id}`),
    ...tools.map((name) => `--without-tool ${quoted(name)}`),
  ];
  return ['signalbox sessions retry', sessionId, ...options].join(' ');
}

/** For a shell. */
function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`;
}
