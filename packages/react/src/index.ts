/** React hooks for sessions of Signalbox. No runtime dependency but React and the client. */
export type * from './types.ts';
