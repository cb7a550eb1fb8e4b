/** React hooks for sessions of Signalbox. No runtime dependency but React and the client. */
export type { Access, UseSessionOptions } from './registry.ts';
export { createSessionStore, type SessionStore, type SessionStoreOptions } from './store.ts';
export type * from './types.ts';
export { type UseSession, useSession } from './use-session.ts';
