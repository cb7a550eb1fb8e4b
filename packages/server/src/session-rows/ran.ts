// What a model's provider ran itself for a response, such as web searches, and what its text cites.
import type { Source } from '@signalbox/contract';

/** Has either an output or an error. */
export interface RanCall {
  readonly tool: string;
  readonly input: unknown;
  readonly output?: unknown;
  readonly error?: string;
}

export interface Ran {
  /** In the order in which they began. */
  readonly calls: readonly RanCall[];
  /** Each once. What the text cites, or else what the provider names as its sources. */
  readonly sources: readonly Source[];
}
