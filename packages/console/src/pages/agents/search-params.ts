// The search parameters of these pages.
import { oneOf, sessionIdPattern, textIn } from '../../search-params.ts';

export function agentsSearch({ archived }: Record<string, unknown>): { archived?: true } {
  return archived === true ? { archived } : {};
}

/** The template to start from. */
export function newAgentSearch(search: Record<string, unknown>): { template?: string } {
  return textIn(search, 'template', /^[a-z]+$/);
}

export interface AgentSearch {
  view?: 'form' | 'json' | 'try';
  /** The session in which the agent is tried. */
  session?: string;
}

export function agentSearch(search: Record<string, unknown>): AgentSearch {
  return {
    ...oneOf(search, 'view', ['form', 'json', 'try'] as const),
    ...textIn(search, 'session', sessionIdPattern),
  };
}

/** The version to show, and the one to compare it with. */
export function versionsSearch({ version, against }: Record<string, unknown>): { version?: number; against?: number } {
  return {
    ...(typeof version === 'number' && { version }),
    ...(typeof against === 'number' && { against }),
  };
}
