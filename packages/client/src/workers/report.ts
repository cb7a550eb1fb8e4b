/** What a program reports of its model for a step: usage, and what the provider ran and cited. It is sent when the step is completed. */
import type { CompleteWorkerTurn, RanToolCall, WorkerSource, WorkerUsage } from '../types.generated.ts';
import { checkUsage, sumOf } from './usage.ts';

/** How many provider calls, and how many sources, a step can have. */
const maxRan = 100;

export interface StepReport {
  usage(more: WorkerUsage): void;
  providerCall(call: RanToolCall): void;
  source(source: WorkerSource): void;
  /** Completes the step with everything so far, which is kept if that fails. A response that failed shows nothing. */
  send(given: CompleteWorkerTurn, complete: (given: CompleteWorkerTurn) => Promise<void>): Promise<void>;
}

export function createReport(): StepReport {
  let usage: WorkerUsage | undefined;
  let providerCalls: RanToolCall[] = [];
  let sources: WorkerSource[] = [];
  return {
    usage(more) {
      checkUsage(more);
      usage = sumOf(usage, more);
    },
    providerCall(call) {
      if (providerCalls.length < maxRan) providerCalls.push(call);
    },
    source(source) {
      const isSame = ({ url, title }: WorkerSource) =>
        url === source.url && (url !== undefined || title === source.title);
      if (sources.length < maxRan && !sources.some(isSame)) sources.push(source);
    },
    async send(given, complete) {
      const taken = { usage, providerCalls, sources };
      [usage, providerCalls, sources] = [undefined, [], []];
      const ran = {
        ...(taken.providerCalls.length > 0 && { providerCalls: taken.providerCalls }),
        ...(taken.sources.length > 0 && { sources: taken.sources }),
      };
      try {
        await complete({ ...given, ...(taken.usage && { usage: taken.usage }), ...(given.error ? {} : ran) });
      } catch (error) {
        usage = taken.usage ? sumOf(usage, taken.usage) : usage;
        providerCalls = [...taken.providerCalls, ...providerCalls];
        sources = [...taken.sources, ...sources];
        throw error;
      }
    },
  };
}
