// Parameters of a request that some servers don't know, although no agent asks for them: what is left out, or has another name there.
import type { OmittedFromRequest } from '../../session-rows/operation-trace.ts';
import type { ModelCall, ModelFailure } from './model.ts';
import type { ProviderError } from './provider-error.ts';

export type RefusedParameter = Exclude<OmittedFromRequest, 'reasoning' | 'providerData'>;

/** The name that has the same meaning. Null: nothing needs the parameter. A setting of the agent is none of these. */
const OTHER_NAME: Readonly<Record<RefusedParameter, RefusedParameter | null>> = {
  // OpenAI's o-series, gpt-6.1-terra and later take only one of them, older servers only the other.
  max_tokens: 'max_completion_tokens',
  max_completion_tokens: 'max_tokens',
  stream_options: null,
  include: null,
  prompt_cache_key: null,
};

const NAMES = Object.keys(OTHER_NAME) as RefusedParameter[];

const WORDS = /^(unsupported_parameter|unknown_parameter|unrecognized_parameter|extra_forbidden)$/;
const SENTENCES =
  /(unsupported|unrecognized|unknown|unexpected) (request )?(parameter|argument|field|keyword)|(parameter|argument|field)s? (is |are )?not supported|does not support (the )?(parameter|argument|field)|extraneous key|extra (inputs|fields) (are )?not permitted|(not supported|not permitted|not allowed|unsupported) (with|by|for|in) th/;

const IN_SENTENCE = /\b(max_tokens|max_completion_tokens|stream_options|prompt_cache_key)\b/;

/** The parameter that the server does not know. Undefined: it refuses the request for something else. */
export function refusedParameterIn(error: ProviderError | undefined): RefusedParameter | undefined {
  if (!error) return undefined;
  const isUnknown = error.words.some((word) => WORDS.test(word)) || SENTENCES.test(error.sentence);
  if (!isUnknown) return undefined;
  // LiteLLM writes "None".
  const named = error.params.filter((param) => param !== 'None').map((param) => param.split(/[.[]/)[0]!);
  const param = NAMES.find((name) => named.includes(name));
  if (param !== undefined || named.length > 0) return param;
  // Only a sentence: the one that it names first.
  const [first] = IN_SENTENCE.exec(error.sentence) ?? [];
  return NAMES.find((name) => name === first);
}

/** The JSON of a request without them, each under its other name if it has one that the server takes. */
export function withoutRefused(body: string, refused: readonly RefusedParameter[]): string {
  if (refused.length === 0) return body;
  const request: Record<string, unknown> = JSON.parse(body);
  for (const name of refused) {
    const { [name]: value } = request;
    if (value === undefined) continue;
    delete request[name];
    const other = OTHER_NAME[name];
    if (other !== null && !refused.includes(other)) request[other] = value;
  }
  return JSON.stringify(request);
}

/** Bounds memory: agents can name any number of models. The oldest is forgotten, and found again. */
const MAX_MODELS = 1_000;

type Learned = Pick<ModelCall, 'withoutParameters' | 'returnsReasoning'>;

/** What this node has learned of the servers of models by what they refused. */
export function createLearned() {
  const found = new Map<string, Learned>();
  const keyOf = ({ organizationId, config: { baseUrl, model } }: ModelCall) =>
    JSON.stringify([organizationId, baseUrl, model]);
  return {
    of: (call: ModelCall): Learned => found.get(keyOf(call)) ?? {},
    /** Undefined: the failure says nothing that is not known. */
    from(call: ModelCall, { refusedParameter, wantsReasoning }: ModelFailure): Learned | undefined {
      const { withoutParameters = [], returnsReasoning = false } = call;
      const isNew = refusedParameter !== undefined && !withoutParameters.includes(refusedParameter);
      if (!isNew && (returnsReasoning || !wantsReasoning)) return undefined;
      const learned = {
        withoutParameters: isNew ? [...withoutParameters, refusedParameter] : withoutParameters,
        returnsReasoning: returnsReasoning || wantsReasoning,
      };
      const key = keyOf(call);
      found.delete(key);
      found.set(key, learned);
      if (found.size > MAX_MODELS) found.delete(found.keys().next().value!);
      return learned;
    },
  };
}
