// A session whose agent uses another agent, in tests: the parent's model is `scripted/parent`, the child's `scripted/child`.
import type { Input, Session, Tool } from '@signalbox/contract';
import { listSessions } from '../../src/sessions/reading/list.ts';
import { agentTool, type World } from './session-world.ts';

type CreateAgent = Input<'createAgent'>;

export interface FamilyOptions {
  parent?: Partial<CreateAgent>;
  child?: Partial<CreateAgent>;
  /** Further tools of the parent; its tool `helper` is the child. */
  tools?: Tool[];
  childTools?: Tool[];
  /** Further fields of the tool `helper`. */
  helper?: object;
  /** Further fields of `openSession`. */
  open?: object;
}

/** Opens the parent and returns its id. The parent's model has to call `helper`. */
export async function openFamily(world: World, options: FamilyOptions = {}): Promise<string> {
  const { parent = {}, child = {}, tools = [], childTools = [], helper = {}, open = {} } = options;
  const childAgentId = await world.agent(childTools, { name: 'Child', model: 'scripted/child', ...child });
  const agentId = await world.agent([agentTool('helper', childAgentId, helper), ...tools], {
    name: 'Parent',
    model: 'scripted/parent',
    ...parent,
  });
  return world.open(agentId, open);
}

/** Resolves with the children of a session, oldest first, once there are at least `count`. */
export async function childrenOf(world: World, parentSessionId: string, count = 1): Promise<Session[]> {
  while (true) {
    const { data } = await listSessions(world.ctx, { parentSessionId, limit: 100 });
    if (data.length >= count) return data.toReversed();
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** Resolves with the first child of a session, once there is one. */
export async function childOf(world: World, parentSessionId: string): Promise<Session> {
  const [child] = await childrenOf(world, parentSessionId);
  return child!;
}
