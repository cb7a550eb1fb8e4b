// The response of model-process.ts, which is about that of a fast model: 300 deltas in 7.5 seconds.
export const DELTAS = 300;
export const INTERVAL_MS = 25;
