// The events of Gemini's generateContent: whole responses, each with a few more parts.
import { parseJson } from '../../lib/json/json.ts';
import { createRanCollector, type RanCollector, sourceOf } from '../response/ran.ts';
import type { EventReader } from '../response/response-events.ts';
import { listIn, numberIn, recordIn, textIn } from './lenient.ts';

type Fields = Record<string, unknown>;

export function createGoogleReader(): EventReader {
  const ran = createRanCollector();
  let grounding: Fields = {};
  let hasSearchCall = false;
  let calledQueries = 0;
  return {
    ran() {
      // Not every model says when it has searched: then the queries and the pages are all there is of it.
      if (!hasSearchCall) searchOf(ran, grounding);
      return ran.ran();
    },
    webSearches: () => queriesIn(grounding.webSearchQueries).length || calledQueries,
    event(value) {
      const given = recordIn(value);
      // What is no response at all is for the package to report.
      if (given.candidates !== undefined && typeof given.candidates !== 'object') return [value];
      const { responseId, candidates, promptFeedback, usageMetadata } = given;
      const candidate = recordIn(listIn(candidates)[0]);
      // The last one is complete.
      if (Object.keys(recordIn(candidate.groundingMetadata)).length > 0) {
        grounding = recordIn(candidate.groundingMetadata);
        for (const chunk of listIn(grounding.groundingChunks)) read(ran, recordIn(chunk));
      }
      for (const part of listIn(recordIn(candidate.content).parts)) {
        if (!collect(ran, recordIn(part))) continue;
        hasSearchCall = true;
        calledQueries += queriesIn(recordIn(recordIn(recordIn(part).toolCall).args).queries).length || 1;
      }
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

/** Calls of the tools that Google runs itself, and their results. Returns whether it is a call of the search. */
function collect(ran: RanCollector, { toolCall, toolResponse, executableCode, codeExecutionResult }: Fields): boolean {
  const [call, result] = [recordIn(toolCall), recordIn(toolResponse)];
  const [called, ended] = [toolNamed(call.toolType), toolNamed(result.toolType)];
  if (called !== null) ran.begin(textIn(call.id) ?? called, called, call.args ?? {});
  if (ended !== null) ran.end(textIn(result.id) ?? ended, ended, { output: result.response ?? null });
  const { code, language } = recordIn(executableCode);
  if (typeof code === 'string') ran.begin(CODE, CODE, { code, language });
  const { outcome, output } = recordIn(codeExecutionResult);
  if (typeof outcome === 'string') ran.end(CODE, CODE, { output: { outcome, output } });
  return called === SEARCH;
}

const SEARCH = 'web_search';
const CODE = 'code_execution';

function toolNamed(type: unknown): string | null {
  const name = textIn(type)?.toLowerCase() ?? null;
  return name !== null && /^google_search(_web)?$/.test(name) ? SEARCH : name;
}

/** Google charges for each that is not empty. */
function queriesIn(queries: unknown): string[] {
  return listIn(queries).flatMap((one) => textIn(one)?.trim() || []);
}

function searchOf(ran: RanCollector, { webSearchQueries, groundingChunks, searchEntryPoint }: Fields): void {
  const queries = queriesIn(webSearchQueries);
  if (queries.length === 0) return;
  ran.begin(SEARCH, SEARCH, { queries });
  const sources = listIn(groundingChunks).map((chunk) => recordIn(recordIn(chunk).web));
  // What Google wants to be shown with the answer.
  const { renderedContent } = recordIn(searchEntryPoint);
  ran.end(SEARCH, SEARCH, {
    output: {
      sources: sources.map(({ uri, title }) => ({ url: textIn(uri), title: textIn(title) })),
      ...(typeof renderedContent === 'string' && { searchEntryPoint: { renderedContent } }),
    },
  });
}

function read(ran: RanCollector, { web, retrievedContext, image, maps }: Fields): void {
  const { uri, sourceUri, title } = recordIn(web ?? retrievedContext ?? image ?? maps);
  ran.reads(sourceOf(textIn(uri) ?? textIn(sourceUri), textIn(title)));
}

function toCandidate({ content, finishReason, continuationToken }: Fields): Fields {
  const { parts } = recordIn(content);
  return {
    content: { parts: listIn(parts).flatMap((part) => toPart(recordIn(part))) },
    finishReason: textIn(finishReason),
    ...(typeof continuationToken === 'string' && { continuationToken }),
  };
}

/** None of a kind that is not known, or that no request asks for. */
function toPart({
  text,
  thought,
  thoughtSignature,
  functionCall,
  inlineData,
  toolCall,
  toolResponse,
}: Fields): readonly Fields[] {
  const more = {
    ...(typeof thought === 'boolean' && { thought }),
    ...(typeof thoughtSignature === 'string' && { thoughtSignature }),
  };
  // An empty one ends a call whose arguments came in pieces.
  if (typeof functionCall === 'object' && functionCall !== null) {
    return [{ functionCall: toCall(recordIn(functionCall)), ...more }];
  }
  for (const [name, given] of [
    ['toolCall', recordIn(toolCall)],
    ['toolResponse', recordIn(toolResponse)],
  ] as const) {
    const { toolType, id, args, response } = given;
    if (typeof toolType !== 'string' || typeof id !== 'string') continue;
    return [{ [name]: name === 'toolCall' ? { toolType, id, args } : { toolType, id, response }, ...more }];
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
