/** A session as a program shows it: what its journal and its transcript say, and a store that follows it. */
export { cursorOf, isAfter, type Position, positionOf } from '../cursor.ts';
export { applyChunk, type JournalState, journalAfter } from './journal.ts';
export { sendableText } from './sendable.ts';
export { createSessionStore, type SessionStore, type SessionStoreOptions } from './store.ts';
export { partsOf } from './transcript.ts';
export { applyToTurn, isOver, newTurn, type TurnState } from './turn.ts';
export type * from './types.ts';
