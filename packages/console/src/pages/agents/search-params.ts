// The search parameters of these pages.
import { oneOf, sessionIdPattern, textIn } from '../../lib/search-params.ts';

export interface AgentsSearch {
  archived?: true;
  /** Words in the name, the description, the model, the tools or the id. */
  q?: string;
  /** `provider/model` */
  model?: string;
}

export function agentsSearch(search: Record<string, unknown>): AgentsSearch {
  // The router parses digits as a number.
  const q = typeof search.q === 'number' ? String(search.q) : search.q;
  return {
    ...(search.archived === true && { archived: true as const }),
    ...textIn({ q }, 'q', /^.{1,200}$/su),
    ...textIn(search, 'model', /^.{1,200}$/su),
  };
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
