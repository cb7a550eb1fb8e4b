// A tool server's response on its way to the model: for every protocol it is limited, storable and free of secrets.
import type { EgressError, EgressErrorKind } from '../../egress/errors.ts';
import { storableText } from '../../lib/text.ts';
import { type Redact, type Redacted, trustedText } from './redact.ts';
import type { ToolFailure } from './tool.ts';

/** Many times what a model can read at once. */
export const RESPONSE_MAX_BYTES = 1024 * 1024;

export const TOO_LONG = `longer than ${RESPONSE_MAX_BYTES} bytes, so it was not read`;

const ERROR_MAX_CHARACTERS = 2048;

/** How an exchange can fail after the request was sent. */
const MAY_HAVE_TAKEN_EFFECT: ReadonlySet<EgressErrorKind> = new Set(['timeout', 'reset', 'aborted', 'protocol']);

/** The error that the model gets for a call that was sent and whose outcome is unknown. */
export function outcomeUnknown(error: Redacted): ToolFailure {
  return { error: trustedText`${error} The request may have taken effect.`, outcomeUnknown: true };
}

/** The error that the model gets for a request without a response. */
export function withoutResponse(error: EgressError): ToolFailure {
  const words = trustedText`${messageOf(error)}.`;
  return MAY_HAVE_TAKEN_EFFECT.has(error.kind) ? outcomeUnknown(words) : { error: words };
}

/** Our own text: an `EgressError` quotes nothing that was sent or received. */
export function messageOf({ message }: EgressError): Redacted {
  return message as Redacted;
}

/** Cuts an error to the length that is worth reading. */
export function beginningOf<T extends string>(text: T): T {
  return text.slice(0, ERROR_MAX_CHARACTERS).toWellFormed() as T;
}

/** A server's text as it may be shown. Characters that can't be stored are removed first: a secret with a NUL would not be found. */
export function shownText(text: string, redact: Redact): Redacted {
  return redact(storableText(text));
}

/** `shownText` for the strings and names of a JSON value, in which JSON's escapes are decoded. */
export function shownJson(value: unknown, redact: Redact): unknown {
  if (typeof value === 'string') return shownText(value, redact);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => shownJson(item, redact));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [shownText(name, redact), shownJson(item, redact)]),
  );
}
