// Counts by name in windows of a minute, each started by its first count. They are in this node's memory, so a limit applies per node,
// and a restart resets it.
import type { Clock } from '../../lib/clock.ts';

export interface Count {
  /** The count of this window, this one included. */
  used: number;
  /** Until the window ends; at least 1. */
  resetSeconds: number;
}

export interface Windows {
  /** Counts one more. */
  add(name: string): Count;
  /** Removes one count. */
  undo(name: string): void;
  /** Counts nothing. */
  peek(name: string): Count;
}

export const WINDOW_SECONDS = 60;
// Names are keys and addresses. Beyond this many in a minute, the oldest windows are dropped. Some callers then get more than their
// limit, which is better than running out of memory.
const MAX_NAMES = 50_000;

export function createWindows(clock: Clock): Windows {
  const windows = new Map<string, { used: number; endsAt: number }>();

  function count(name: string, more: number): Count {
    const now = clock.now().getTime();
    let window = windows.get(name);
    if (!window || window.endsAt <= now) {
      window = { used: 0, endsAt: now + WINDOW_SECONDS * 1000 };
      if (more > 0) {
        // Last in the order of the map, because it ends last.
        windows.delete(name);
        windows.set(name, window);
        makeRoom(now);
      }
    }
    window.used += more;
    return { used: window.used, resetSeconds: Math.max(1, Math.ceil((window.endsAt - now) / 1000)) };
  }

  function makeRoom(now: number): void {
    for (const [name, { endsAt }] of windows) {
      if (endsAt > now && windows.size <= MAX_NAMES) return;
      windows.delete(name);
    }
  }

  return {
    add: (name) => count(name, 1),
    undo(name) {
      const window = windows.get(name);
      if (window && window.used > 0) window.used -= 1;
    },
    peek: (name) => count(name, 0),
  };
}
