// What `signalbox trigger` can cause: a scripted agent for each event, which needs no model key and calls nothing.
import type { Chunk, CreateAgent, ScriptStep } from '@signalbox/client';

export interface TriggerEvent {
  about: string;
  script: ScriptStep[];
  tools?: CreateAgent['tools'];
  /** The session ends after its turn. */
  closeOnIdle: boolean;
  /** Denies the tool call, so that the turn continues. */
  denies?: true;
  /** The chunk for which the command waits. */
  causes(chunk: Chunk): boolean;
}

const transfer = (approval: 'always' | 'never') => [
  {
    type: 'client' as const,
    name: 'transfer_money',
    description: 'Transfers money. A test: nothing happens.',
    inputSchema: { type: 'object' },
    approval,
  },
];
const transfers: ScriptStep[] = [
  { text: 'I will transfer the money.', toolCalls: [{ name: 'transfer_money', input: { amountUsd: 120, to: 'Ada' } }] },
  { text: 'Nothing was transferred.' },
];
const isStatus = (status: string) => (chunk: Chunk) => chunk.type === 'session.status' && chunk.status === status;

export const triggerEvents: Readonly<Record<string, TriggerEvent>> = {
  'session.completed': {
    about: 'a session says something and completes',
    script: [{ text: 'Hello from a test session.' }],
    closeOnIdle: true,
    causes: isStatus('completed'),
  },
  'session.failed': {
    about: 'a session whose only turn fails',
    script: [{ failWith: 'rejected' }],
    closeOnIdle: true,
    causes: isStatus('failed'),
  },
  'turn.completed': {
    about: 'a turn ends, and the session is idle',
    script: [{ text: 'Hello from a test session.' }],
    closeOnIdle: false,
    causes: isStatus('idle'),
  },
  'turn.failed': {
    about: 'a turn fails, and the session is idle',
    script: [{ failWith: 'rejected' }],
    closeOnIdle: false,
    causes: isStatus('idle'),
  },
  'tool.call': {
    about: 'a session waits for the result of a client tool',
    script: transfers,
    tools: transfer('never'),
    closeOnIdle: false,
    causes: (chunk) => chunk.type === 'tool.call',
  },
  'approval.requested': {
    about: 'a session waits for an approval',
    script: transfers,
    tools: transfer('always'),
    closeOnIdle: false,
    causes: (chunk) => chunk.type === 'approval.requested',
  },
  'approval.resolved': {
    about: 'a tool call is denied, and the session completes',
    script: transfers,
    tools: transfer('always'),
    closeOnIdle: true,
    denies: true,
    causes: isStatus('completed'),
  },
};

/** By this name the agent of an event is found again. */
export function agentNameOf(event: string): string {
  return `Test event ${event}`;
}
