/** A session as a program shows it: what its journal and its transcript say, and a store that follows it. */
export { cursorOf, isAfter, type Position, positionOf } from '../cursor.ts';
export { sendableText } from './sendable.ts';
export { createSessionStore, type SessionStore, type SessionStoreOptions } from './store.ts';
export type * from './types.ts';
