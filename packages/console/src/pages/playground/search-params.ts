import { agentIdPattern, sessionIdPattern, textIn } from '../../lib/search-params.ts';

/** What to open: a version of an agent, or a turn of a session. Without any, what was open before. */
export interface PlaygroundSearch {
  agent?: string;
  version?: number;
  session?: string;
  turn?: number;
  step?: number;
}

export function playgroundSearch(search: Record<string, unknown>): PlaygroundSearch {
  return {
    ...textIn(search, 'agent', agentIdPattern),
    ...wholeNumber(search, 'version'),
    ...textIn(search, 'session', sessionIdPattern),
    ...wholeNumber(search, 'turn'),
    ...wholeNumber(search, 'step'),
  };
}

function wholeNumber<K extends string>(search: Record<string, unknown>, name: K): { [name in K]?: number } {
  const value = Number(search[name]);
  return Number.isInteger(value) && value > 0 ? ({ [name]: value } as { [name in K]: number }) : {};
}
