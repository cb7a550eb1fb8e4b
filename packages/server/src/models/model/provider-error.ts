// What an error of a provider's server says, whatever its form.
//
// Each server has a form of its own, and gateways put one inside another: `{ error: { message, type, param, code } }`, the same in a
// list, an error that is a string, a message that is an object or the JSON of another error. All of them are read as layers, from
// the outermost to the innermost. Any of them may quote the prompt, so what is found here is compared and searched. Only
// provider-failure.ts decides what of it is shown.
import { parseJson } from '../../lib/json/json.ts';

export interface ProviderError {
  /** Codes, types and statuses of all layers, in lower case: RPC statuses are in capitals. */
  readonly words: readonly string[];
  /** Which of them could be shown, the most telling first. */
  readonly codes: readonly string[];
  /** What could name the part of the request that is refused, the most telling first: `tools[5].function.parameters`. */
  readonly params: readonly string[];
  /** Which of them the server itself names. What it passes on may be of a request that it has made of this one. */
  readonly ownParams: readonly string[];
  /** All sentences, in lower case. */
  readonly sentence: string;
  /** A status like HTTP's that the error names, for one that arrived with status 200. */
  readonly status: number | undefined;
  /** The fields of all layers, for what only one provider sends. */
  readonly layers: readonly Readonly<Record<string, unknown>>[];
}

const MAX_DEPTH = 6;
const MAX_LAYERS = 20;
const MAX_SENTENCE = 20_000;

/** The error in the body of a response whose status is an error's. Undefined if there is none. */
export function errorInBody(text: string): ProviderError | undefined {
  // Some gateways send an error as they would in a stream.
  const [, inStream] = /^(?:event:[^\n]*\n)?data:\s*(\{.*)/.exec(text) ?? [];
  const body = parseJson(inStream ?? text);
  // A page of a proxy says nothing about the request.
  if (body === undefined) return text.startsWith('<') ? undefined : errorOf(text);
  return errorOf(body);
}

/** The error that an event of a stream is, or that a response with status 200 is. Undefined if it is no error. */
export function errorInEvent(event: unknown): ProviderError | undefined {
  if (!isRecord(event)) return undefined;
  const { error, type, object, response, base_resp } = event;
  // Anthropic, OpenAI (Responses), vLLM.
  const isError = type === 'error' || type === 'response.failed' || object === 'error';
  if (isError || isSaid(error)) return errorOf(event) ?? NOTHING_SAID;
  if (isRecord(response) && isSaid(response.error)) return errorOf(response);
  if (isMiniMax(base_resp)) return errorOf({ message: base_resp.status_msg, code: base_resp.status_code });
  const choice = listOf(event.choices).find((one) => isRecord(one) && isSaid(one.error));
  if (choice !== undefined) return errorOf(choice);
  // Cohere and FastAPI: `{ message }`, `{ detail }`.
  const isBare = isSaid(event.detail) || [event.message, event.msg].some((said) => typeof said === 'string');
  return isBare && type === undefined && event.choices === undefined && event.candidates === undefined
    ? errorOf(event)
    : undefined;
}

/** MiniMax reports its errors with status 200, and a number of its own. 0: there is none. */
function isMiniMax(base: unknown): base is Record<string, unknown> {
  return isRecord(base) && Number(base.status_code ?? 0) !== 0;
}

const NOTHING_SAID: ProviderError = {
  words: [],
  codes: [],
  params: [],
  ownParams: [],
  sentence: '',
  status: undefined,
  layers: [],
};

/** Some servers send the fields of an error, all of them empty, with each event. */
function isSaid(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return typeof error === 'string' && error !== '';
  return Object.values(error).some((value) => value !== null && value !== undefined && value !== '' && value !== 0);
}

/** Undefined if there is nothing that an error would have. */
function errorOf(body: unknown): ProviderError | undefined {
  const found: Found = { layers: [], sentences: [], passedOn: new Set() };
  collect(body, 0, found, false);
  const { layers, passedOn } = found;
  if (layers.length === 0 && found.sentences.length === 0) return undefined;
  const inner = layers.toReversed();
  const sentences = found.sentences.map(({ text }) => text);
  const named = inner.flatMap(({ code, status, type }) => [code, status, type]);
  const codes = [...new Set(named.filter((word) => typeof word === 'string'))];
  const reasons = layers.flatMap(({ details }) => listOf(details).map((detail) => fieldOf(detail, 'reason')));
  const sentence = sentences.join('\n').slice(0, MAX_SENTENCE);
  return {
    words: [...codes, ...reasons].filter((word) => typeof word === 'string').map((word) => word.toLowerCase()),
    codes,
    params: [...inner.flatMap(paramsOf), ...sentences.toReversed().flatMap(pathsIn)],
    ownParams: [
      ...inner.filter((layer) => !passedOn.has(layer)).flatMap(paramsOf),
      ...found.sentences.toReversed().flatMap(({ text, isOwn }) => (isOwn ? pathsIn(text) : [])),
    ],
    sentence: sentence.toLowerCase(),
    status: layers
      .flatMap(({ code, status, statusCode, status_code }) => [code, status, statusCode, status_code])
      .map(Number)
      .find((status) => Number.isInteger(status) && status >= 400 && status < 600),
    layers,
  };
}

interface Found {
  readonly layers: Record<string, unknown>[];
  readonly sentences: { readonly text: string; readonly isOwn: boolean }[];
  /** Layers of an error that a gateway passes on as a text. */
  readonly passedOn: Set<unknown>;
}

/** Adds the layers of a value, the outermost first, and its sentences. */
function collect(value: unknown, depth: number, found: Found, isPassedOn: boolean): void {
  const { layers, sentences, passedOn } = found;
  if (depth > MAX_DEPTH || layers.length >= MAX_LAYERS) return;
  const next = (inner: unknown, isOfAnother = isPassedOn) => collect(inner, depth + 1, found, isOfAnother);
  if (typeof value === 'string') {
    if (value.trim() !== '') sentences.push({ text: value, isOwn: !isPassedOn });
    // A gateway may pass on the JSON of what it called.
    const [json] = /[[{][\s\S]*[}\]]/.exec(value.slice(0, MAX_SENTENCE)) ?? [];
    const inner = json === undefined ? undefined : parseJson(json);
    if (typeof inner === 'object' && inner !== null) next(inner, true);
  } else if (Array.isArray(value)) {
    for (const one of value.slice(0, MAX_LAYERS)) if (isRecord(one)) next(one);
  } else if (isRecord(value)) {
    const { msg, error, detail, errors, response, innererror, metadata } = value;
    // AWS, of a request without a valid key.
    const message = value.message ?? value.Message;
    if ([message, msg, value.code, value.type, value.status].some((field) => field !== undefined)) {
      layers.push(value);
      if (isPassedOn) passedOn.add(value);
    }
    for (const inner of [message, msg, error, detail, errors, innererror]) next(inner);
    if (isRecord(response)) next(response.error);
    // OpenRouter: what the provider behind it said.
    if (isRecord(metadata)) next(metadata.raw, true);
  }
}

/** The names that a layer gives of a part of the request. */
function paramsOf({ param, loc, path, paths, details }: Record<string, unknown>): string[] {
  // Anthropic: in its details.
  const inPaths = [...listOf(paths), ...listOf(fieldOf(details, 'paths'))];
  const violations = listOf(details).flatMap((detail) => listOf(fieldOf(detail, 'fieldViolations')));
  return [
    ...[param, ...inPaths, ...violations.map((violation) => fieldOf(violation, 'field'))].filter(
      (name) => typeof name === 'string',
    ),
    // FastAPI and zod: a list of keys.
    ...[loc, path, ...inPaths]
      .filter(Array.isArray)
      .map((keys: unknown[]) => keys.filter((key) => key !== 'body').join('.')),
  ];
}

/** Anthropic, Groq and Google begin their sentence with the path of what they refuse: `tools.3.custom.input_schema: …`. */
function pathsIn(sentence: string): string[] {
  const [, path] = /^(?:\* ?)?(?:Invalid (?:value at )?)?['"]?([\w.[\]]{1,120})['"]?[ :(]/.exec(sentence) ?? [];
  if (path !== undefined && /\W\d/.test(path)) return [path];
  // DeepSeek, vLLM.
  const [, index] = /\bmessage (?:at )?index (\d{1,5})\b/.exec(sentence) ?? [];
  return index === undefined ? [] : [`messages.${index}`];
}

function fieldOf(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, MAX_LAYERS) : [];
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
