import { defineAgent } from 'eve';

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 20, text: 20, reasoning: 0 },
};

export default defineAgent({
  modelContextWindowTokens: 1_000_000,
  model: {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'instant',
    supportedUrls: {},
    async doGenerate() {
      throw new Error('The benchmark only streams');
    },
    async doStream() {
      const deltas = Array.from({ length: 20 }, (_, at) => ({ type: 'text-delta', id: '1', delta: `word${at} ` }));
      const parts = [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: '1' },
        ...deltas,
        { type: 'text-end', id: '1' },
        { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage },
      ];
      return { stream: ReadableStream.from(parts) };
    },
  },
});
