// The events of Gemini's generateContent: whole responses, each with a few more parts.
import { parseJson } from '../../lib/json/json.ts';
import type { EventReader } from '../response/response-events.ts';
import { listIn, numberIn, recordIn, textIn } from './lenient.ts';

type Fields = Record<string, unknown>;

export function createGoogleReader(): EventReader {
  return {
    event(value) {
      const given = recordIn(value);
      // What is no response at all is for the package to report.
      if (given.candidates !== undefined && typeof given.candidates !== 'object') return [value];
      const { responseId, candidates, promptFeedback, usageMetadata } = given;
      const blockReason = textIn(recordIn(promptFeedback).blockReason);
      return [
        {
          responseId: textIn(responseId),
          candidates: listIn(candidates).map((candidate) => toCandidate(recordIn(candidate))),
          ...(blockReason !== null && { promptFeedback: { blockReason } }),
          ...(usageMetadata !== undefined &&
            usageMetadata !== null && { usageMetadata: toUsage(recordIn(usageMetadata)) }),
        },
      ];
    },
    whole(body) {
      const { candidates, promptFeedback } = recordIn(body);
      return candidates === undefined && promptFeedback === undefined ? undefined : [body];
    },
  };
}

function toCandidate({ content, finishReason, continuationToken }: Fields): Fields {
  const { parts } = recordIn(content);
  return {
    content: { parts: listIn(parts).flatMap((part) => toPart(recordIn(part))) },
    finishReason: textIn(finishReason),
    ...(typeof continuationToken === 'string' && { continuationToken }),
  };
}

/** None of a kind that is not known, and none of tools that the provider runs itself: no request asks for them. */
function toPart({ text, thought, thoughtSignature, functionCall, inlineData }: Fields): readonly Fields[] {
  const more = {
    ...(typeof thought === 'boolean' && { thought }),
    ...(typeof thoughtSignature === 'string' && { thoughtSignature }),
  };
  // An empty one ends a call whose arguments came in pieces.
  if (typeof functionCall === 'object' && functionCall !== null) {
    return [{ functionCall: toCall(recordIn(functionCall)), ...more }];
  }
  const { mimeType, data } = recordIn(inlineData);
  if (typeof mimeType === 'string' && typeof data === 'string') return [{ inlineData: { mimeType, data }, ...more }];
  const said = textIn(text);
  if (said !== null) return [{ text: said, ...more }];
  // A signature may come alone.
  return 'thoughtSignature' in more ? [{ text: '', ...more }] : [];
}

function toCall({ id, name, args, partialArgs, willContinue }: Fields): Fields {
  return {
    id: textIn(id),
    name: textIn(name),
    args: typeof args === 'string' ? (parseJson(args) ?? args) : args,
    ...(Array.isArray(partialArgs) && { partialArgs }),
    ...(typeof willContinue === 'boolean' && { willContinue }),
  };
}

function toUsage(usage: Fields): Fields {
  const names = [
    'cachedContentTokenCount',
    'thoughtsTokenCount',
    'promptTokenCount',
    'candidatesTokenCount',
    'toolUsePromptTokenCount',
    'totalTokenCount',
  ];
  return Object.fromEntries(names.map((name) => [name, numberIn(usage[name])]));
}
