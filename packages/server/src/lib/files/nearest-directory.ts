import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** The path itself, or the directory in which it would be created: its nearest parent that exists. */
export async function nearestDirectory(path: string): Promise<string> {
  const parent = dirname(path);
  if (parent === path || (await stat(path).catch(() => undefined))) return path;
  return nearestDirectory(parent);
}
