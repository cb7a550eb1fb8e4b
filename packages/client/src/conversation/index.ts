/** A session as a program shows it: what its journal and its transcript say, and a store that follows it. */
export { cursorOf, isAfter, type Position, positionOf } from '../cursor.ts';
export { type Connection, type FollowerOptions, SessionFollower } from './follower.ts';
export { gather } from './gather.ts';
export { sendableText } from './sendable.ts';
export { createSessionStore, type SessionStore, type SessionStoreOptions } from './store.ts';
export { partsOf } from './transcript.ts';
export { applyToTurn, hasResult, isOver, newTurn, type TurnState, toolOf } from './turn.ts';
export type * from './types.ts';
