// Whose fault a failure of a provider is: the request's, the account's, the key's, a filter's, or the moment's.
//
// Statuses alone do not say it: an account without credit is 400, 402, 403 or 429, and a moment that has passed a second later may be
// 400 as well. So codes decide first, and sentences last.

import type { ModelFailureCode } from '../model/model.ts';
import { isRecord, type ProviderError } from '../model/provider-error.ts';
import { isContextTooLong } from './context-too-long.ts';
import { mediaNamedIn, type RefusedMedia } from './refused-file.ts';

export interface Meaning {
  readonly code: ModelFailureCode;
  readonly retryable: boolean;
  /** Default: as the code and the status say. */
  readonly isOfRequest?: boolean;
  readonly isRefusal?: boolean;
  /** Added to the message. */
  readonly why?: string;
}

/** `status`: undefined if there is none, in an event of a stream. `media`: the kinds of files that the request has. */
export function meaningOf(
  status: number | undefined,
  error: ProviderError | undefined,
  media: ReadonlySet<RefusedMedia> = new Set(),
): Meaning {
  const is = isIn(status, error);
  if (is(FILTER) || isFlagged(error)) return { code: 'model_rejected', retryable: false, isRefusal: true };
  if (isOfAccount(status, error)) {
    const isQuota = status === 429 || (status === undefined && is({ words: /quota|limit/ }));
    const why = 'the account has no credit left, has reached its limit, or may not use this';
    return { code: isQuota ? 'model_rate_limited' : 'model_rejected', retryable: false, isOfRequest: false, why };
  }
  if (is(KEY) || (status === 403 && is({ words: /api_key|authentication|unauthenticated|permission/ }))) {
    return { code: 'model_key_rejected', retryable: false };
  }
  if (is(MORE_THAN_THE_RATE)) {
    const why = 'it is larger than the account may send in a minute';
    return { code: 'model_rate_limited', retryable: false, isOfRequest: false, why };
  }
  if (is(OUTPUT)) return { code: 'model_protocol', retryable: true };
  if (status !== undefined && status >= 500) return meaningOfServerError(status, error);
  if (is(RATE)) return { code: 'model_rate_limited', retryable: true };
  if (is(TIMEOUT)) return { code: 'model_timeout', retryable: true };
  const isOfFile = error !== undefined && mediaNamedIn(error).some((one) => media.has(one));
  if (isContextTooLong(status, error, isOfFile)) return { code: 'model_context_too_long', retryable: false };
  // An event without a status, and without anything that is known, is of the moment.
  const isOfRequest = status === undefined ? is(REQUEST) || (isOfFile && !is(MOMENT)) : !is(MOMENT);
  return isOfRequest ? { code: 'model_rejected', retryable: false } : { code: 'model_unavailable', retryable: true };
}

/** Some servers report the request's fault as one of their own. */
function meaningOfServerError(status: number, error: ProviderError | undefined): Meaning {
  if (isContextTooLong(status, error)) return { code: 'model_context_too_long', retryable: false };
  if (isIn(status, error)(TEMPLATE)) return { code: 'model_rejected', retryable: false };
  return { code: 'model_unavailable', retryable: true };
}

/** What identifies a kind of failure: any of these. Codes count with any status, sentences only with those in `of`. */
interface Signs {
  readonly statuses?: readonly number[];
  readonly words?: RegExp;
  readonly sentences?: RegExp;
  /** Default: any. An event without a status is always included. */
  readonly of?: readonly number[];
}

function isIn(status: number | undefined, error: ProviderError | undefined): (signs: Signs) => boolean {
  return ({ statuses, words, sentences, of }) =>
    (status !== undefined && statuses?.includes(status)) ||
    (words !== undefined && (error?.words.some((word) => words.test(word)) ?? false)) ||
    (sentences !== undefined &&
      error !== undefined &&
      (status === undefined || (of?.includes(status) ?? true)) &&
      sentences.test(error.sentence));
}

/** Azure, OpenAI, OpenRouter, Moonshot; Alibaba, and gateways that check words. */
const FILTER: Signs = {
  words:
    /^(content_filter(ed)?|content_policy_violation|responsibleaipolicyviolation|invalid_prompt|image_content_policy_violation|moderation_blocked|data_inspection_failed|datainspectionfailed|sensitive_words_detected|prohibited_content)$/,
  sentences:
    /content management policy|blocked by content filtering|flagged as potentially violating|requires moderation|input was flagged|flagged for "/,
  of: [400, 403, 422, 451],
};

/** OpenRouter: the reasons of the moderation before the model. */
function isFlagged(error: ProviderError | undefined): boolean {
  return (error?.layers ?? []).some(
    ({ metadata }) => isRecord(metadata) && (metadata.flagged_input !== undefined || Array.isArray(metadata.reasons)),
  );
}

/** OpenAI, Anthropic, LiteLLM, and servers that use their formats. */
const ACCOUNT: Signs = {
  statuses: [412],
  words:
    /^(insufficient_(quota|balance|credits?|funds)|billing_|exceeded_current_quota|credit_balance_exhausted|enforced_spend_limit|payment_required|budget_exceeded|account_(suspended|deactivated|disabled)|failed_precondition$)|_(spend|usage)_limit_(exceeded|reached)$/,
  sentences:
    /credit balance|insufficient (account )?(balance|credits?|funds|quota)|(spend|spending|budget) limit|usage limit of the billing|reached your specified api usage limits|organization has been disabled|budget has been exceeded|no resource package|account .{0,40}(suspended|deactivated|in arrears)/,
  of: [400, 403, 429],
};

function isOfAccount(status: number | undefined, error: ProviderError | undefined): boolean {
  const layers = error?.layers ?? [];
  // OpenRouter: requests of this account that still run have reserved its credit.
  if (layers.some(({ metadata }) => isRecord(metadata) && metadata.limit_source === 'openrouter_in_flight_budget')) {
    return false;
  }
  if (status === 402) return true;
  // Google says "you exceeded your current quota" for each minute as well. Only its quota of a day is long.
  const quotas = layers.flatMap(({ details }) => (Array.isArray(details) ? details : []));
  const violations = quotas.flatMap((quota) =>
    isRecord(quota) && Array.isArray(quota.violations) ? quota.violations : [],
  );
  if (violations.some((one) => isRecord(one) && /per_?day/i.test(String(one.quotaId)))) return true;
  return isIn(status, error)(ACCOUNT);
}

/** Google reports a wrong key with 400, xAI in a sentence. */
const KEY: Signs = {
  statuses: [401],
  words:
    /api_key|^authentication_error$|^invalid_authentication|^unauthenticated$|^accessdenied|^unrecognizedclient|^expiredtoken|^invalidsignature|^incompletesignature|^missingauthenticationtoken/,
  sentences:
    /(invalid|incorrect|wrong) api.?key|api.?key (is )?(not valid|invalid|incorrect)|make sure your api key is valid/,
  of: [400, 403],
};

/** OpenAI; Groq with 413: no wait makes such a request possible. */
const MORE_THAN_THE_RATE: Signs = { sentences: /request too large for .{0,200}per min/, of: [413, 429] };

const RATE: Signs = {
  statuses: [402, 429],
  words: /rate_?limit|too_many_requests|insufficient_quota|resource_exhausted|throttl|slow_down/,
  sentences: /rate.?limit|too many requests|too many tokens, please wait|throttl/,
  of: [400, 403, 413],
};

const TIMEOUT: Signs = { statuses: [408], words: /deadline_exceeded|timeout/ };

/** Groq: the server can't read what its model wrote. Another response may be right. */
const OUTPUT: Signs = { words: /^(tool_use_failed|json_validate_failed|output_parse_failed)$/ };

/** llama.cpp, LM Studio: the model's template refuses the conversation, which they report as a fault of their own. */
const TEMPLATE: Signs = { sentences: /jinja (exception|template)|error rendering prompt/, of: [500] };

const MOMENT: Signs = {
  // 498: Groq has no capacity for this tier.
  statuses: [409, 424, 425, 498, 499],
  words: /overloaded|unavailable|model_?not_?ready|modelerror|capacity_exceeded/,
  sentences: /overloaded|temporarily unavailable|please try again|try again later|no available capacity/,
  of: [400, 403],
};

/** OpenAI has many codes of images: `image_too_large`, `invalid_base64_image`, `empty_image_file`. */
const REQUEST: Signs = {
  words:
    /invalid_(request|argument)|(^|_)image(_|$)|failed_precondition|not_found|billing|extra_forbidden|validationexception|resourcenotfound/,
};
