/** Google's streamGenerateContent as server-sent events: whole responses, each with a few more parts; lines end with CR LF. */
import { type ResponsePart, stream, textOfInput, type Wire } from './provider-server.ts';

export const generateContent: Wire = {
  basePath: '/v1beta',
  respond({ parts = [], stop, usage = { input: 10, cached: 0, output: 5 }, end = 'done' }) {
    return (response) => {
      const chunk = (more: { parts?: object[]; finishReason?: string }) => ({
        candidates: [
          {
            ...(more.parts && { content: { parts: more.parts, role: 'model' } }),
            ...(more.finishReason && { finishReason: more.finishReason }),
            index: 0,
          },
        ],
        usageMetadata: {
          promptTokenCount: usage.input,
          candidatesTokenCount: usage.output - 1,
          totalTokenCount: usage.input + usage.output,
          ...(usage.cached > 0 && {
            cachedContentTokenCount: usage.cached,
            cacheTokensDetails: [{ modality: 'TEXT', tokenCount: usage.cached }],
          }),
          promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.input }],
          thoughtsTokenCount: 1,
          serviceTier: 'standard',
        },
        modelVersion: 'gemini-test',
        responseId: 'r1',
      });
      const finishReason = stop === 'maxOutputTokens' ? 'MAX_TOKENS' : stop === 'refusal' ? 'SAFETY' : 'STOP';
      return stream(response, end, {
        before: parts.flatMap(partsOf).map((part) => event(chunk({ parts: [part] }))),
        last: [event(chunk({ parts: [{ text: '' }], finishReason }))],
        error: (kind) => event(generateContent.error(kind === 'overloaded' ? 503 : 429, 'Try again.') as object),
      });
    };
  },
  error: (code, message) => ({ error: { code, message, status: rpcStatuses[code] ?? 'INTERNAL' } }),
};

const rpcStatuses: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
};

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\r\n\r\n`;
}

/** A call is sent whole: only Vertex sends arguments in pieces. */
function partsOf(part: ResponsePart): object[] {
  const seal = part.seal === undefined ? {} : { thoughtSignature: part.seal };
  if ('call' in part)
    return [{ functionCall: { name: part.call, args: JSON.parse(textOfInput(part.input)) }, ...seal }];
  const [texts, more] = 'reasoning' in part ? [part.reasoning, { thought: true }] : [part.text, {}];
  return texts.map((text, at) => ({ text, ...more, ...(at === texts.length - 1 && seal) }));
}
