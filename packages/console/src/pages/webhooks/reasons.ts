// Why an attempt failed, and what somebody can do about it, in plain words.
import type { WebhookAttempt } from '@signalbox/client';

export interface Reason {
  what: string;
  mend: string;
}

/** The address of the built-in receiver. */
export const testReceiverUrl = 'signalbox:test-receiver';

/** Of a failed attempt; undefined of one that was accepted. */
export function reasonOf({ status, error }: Pick<WebhookAttempt, 'status' | 'error'>): Reason | undefined {
  if (error === null) return undefined;
  if (status !== null) return answered(status);
  return unanswered[error] ?? { what: `The attempt failed (${error}).`, mend: 'Try it again with a test.' };
}

/** How an attempt went, in a few words. */
export function outcomeOf({ status, error }: Pick<WebhookAttempt, 'status' | 'error'>): string {
  if (status !== null) return `${error === null ? 'Accepted' : 'Answered'} with ${status}`;
  return shortly[error ?? ''] ?? `Failed (${error})`;
}

// As egress names them.
const unanswered: Record<string, Reason> = {
  not_allowed: {
    what: 'The address is not allowed: it, or one that its name stands for, is not public.',
    mend: 'Use an https address that the internet can reach. For a receiver in a private network, the operator lists it in SIGNALBOX_EGRESS_ALLOW.',
  },
  dns: {
    what: "The name in the address can't be looked up.",
    mend: 'Check the spelling of the address, and that the name has a record in DNS.',
  },
  connect_timeout: {
    what: 'Nobody takes the connection: there was none within 5 seconds.',
    mend: 'Check that the receiver runs, and that its firewall lets connections from Signalbox in.',
  },
  connect: {
    what: 'The connection is refused.',
    mend: 'Check that the receiver runs and listens on the port of the address.',
  },
  tls: {
    what: "The secure connection can't be made: the certificate is not good for this name, or has expired.",
    mend: 'Give the receiver a certificate of a known authority for this name, with its whole chain.',
  },
  timeout: {
    what: 'The answer does not come within 15 seconds.',
    mend: 'Keep what arrived, answer at once, and do the work after it.',
  },
  reset: {
    what: 'The receiver closes the connection before its answer is complete.',
    mend: 'Look into the log of the receiver, or of the proxy before it: it may have crashed or refused the body.',
  },
  aborted: { what: 'The service stopped while the attempt was under way.', mend: 'It is made again by itself.' },
  protocol: {
    what: 'What answers there does not speak HTTP.',
    mend: 'Check the port, and whether it is https or http.',
  },
};

const shortly: Record<string, string> = {
  not_allowed: 'Address not allowed',
  dns: 'Name not found',
  connect_timeout: 'No connection in time',
  connect: 'Connection refused',
  tls: 'No secure connection',
  timeout: 'No answer in time',
  reset: 'Connection broken off',
  aborted: 'Interrupted',
  protocol: 'Not HTTP',
};

function answered(status: number): Reason {
  const what = `The receiver answers with ${status}.`;
  switch (status) {
    case 400:
    case 401:
    case 403:
      return {
        what: `The receiver refuses the delivery: it answers with ${status}.`,
        mend: 'Most often it checks with another secret. Give it the newest one (rotate, if it is lost), and verify the body as it came, before any parser. A clock that is wrong by more than 5 minutes does it too.',
      };
    case 404:
    case 405:
      return {
        what: `${what} There is nothing at this path that takes a POST.`,
        mend: 'Check the path of the address.',
      };
    case 410:
      return {
        what: 'The receiver answered with 410: it wants nothing more.',
        mend: 'When it should receive again, make it answer with 2xx and enable the subscription.',
      };
    case 413:
      return {
        what: `${what} The body is too long for it.`,
        mend: 'Let it take at least 8 MiB, proxies before it too.',
      };
    case 429:
    case 503:
      return {
        what: `${what} It has too much to do, or is not ready.`,
        mend: 'Nothing has to be done if it recovers: deliveries wait, as long as its Retry-After says.',
      };
    default:
      if (status >= 300 && status < 400) {
        return {
          what: `The receiver redirects (${status}). Redirects are not followed.`,
          mend: 'Give the address that it redirects to.',
        };
      }
      if (status >= 500) {
        return {
          what: `The receiver fails: it answers with ${status}.`,
          mend: "Look into the receiver's log. Its answer, with each attempt, may say why.",
        };
      }
      return { what, mend: 'Any 2xx is success. Its answer, with each attempt, may say why.' };
  }
}
