/** A session as an agent of AG-UI (`@ag-ui/client` 1). */
export { SignalboxAgent, type SignalboxAgentConfig } from './agent.ts';
