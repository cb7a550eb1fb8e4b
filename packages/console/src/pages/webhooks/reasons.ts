// Why an attempt failed and how to fix it, in plain words.
import type { WebhookAttempt } from '@signalbox/client';

export interface Reason {
  what: string;
  fix: string;
}

/** The URL of the built-in receiver. */
export const testReceiverUrl = 'signalbox:test-receiver';

/** Where deliveries are sent, in one line. */
export function destinationText(url: string): string {
  return url === testReceiverUrl ? 'the test receiver' : url;
}

/** The reason for a failed attempt; undefined if the attempt succeeded. */
export function reasonOf({ status, error }: Pick<WebhookAttempt, 'status' | 'error'>): Reason | undefined {
  if (error === null) return undefined;
  if (status !== null) return answered(status);
  return unanswered[error] ?? { what: `The attempt failed (${error}).`, fix: 'Send a test to try again.' };
}

/** The result of an attempt, in a few words. */
export function outcomeOf({ status, error }: Pick<WebhookAttempt, 'status' | 'error'>): string {
  if (status !== null) return `${error === null ? 'Accepted' : 'Refused'} with ${status}`;
  return shortly[error ?? ''] ?? `Failed (${error})`;
}

// By the service's error codes.
const unanswered: Record<string, Reason> = {
  not_allowed: {
    what: 'The URL is not allowed because its address is not public.',
    fix: 'Use an https URL that is reachable from the internet. For a receiver in a private network, ask the operator to add it to SIGNALBOX_EGRESS_ALLOW.',
  },
  dns: {
    what: 'The host name in the URL can’t be resolved.',
    fix: 'Check the spelling of the URL and the DNS record of the host.',
  },
  connect_timeout: {
    what: 'The receiver did not accept the connection within 5 seconds.',
    fix: 'Check that the receiver is running and that its firewall allows connections from Signalbox.',
  },
  connect: {
    what: 'The connection was refused.',
    fix: 'Check that the receiver is running and listens on the port in the URL.',
  },
  tls: {
    what: 'The TLS connection failed: the certificate is expired or not valid for this host.',
    fix: 'Install a certificate from a trusted authority for this host, with its full chain.',
  },
  timeout: {
    what: 'The receiver did not respond within 15 seconds.',
    fix: 'Store the delivery, respond immediately, and do the work afterwards.',
  },
  reset: {
    what: 'The receiver closed the connection before its response was complete.',
    fix: 'Check the log of the receiver or of the proxy in front of it. It may have crashed or rejected the body.',
  },
  aborted: { what: 'The service stopped during the attempt.', fix: 'It is retried automatically.' },
  protocol: {
    what: 'The server at this address doesn’t speak HTTP.',
    fix: 'Check the port, and whether the URL should use https or http.',
  },
};

const shortly: Record<string, string> = {
  not_allowed: 'URL not allowed',
  dns: 'Host not found',
  connect_timeout: 'Connection timed out',
  connect: 'Connection refused',
  tls: 'TLS error',
  timeout: 'Response timed out',
  reset: 'Connection closed early',
  aborted: 'Interrupted',
  protocol: 'Not HTTP',
};

function answered(status: number): Reason {
  const what = `The receiver returned ${status}.`;
  switch (status) {
    case 400:
    case 401:
    case 403:
      return {
        what: `The receiver rejected the delivery with ${status}.`,
        fix: 'Usually it uses another signing secret. Give it the newest one (rotate if you lost it), and verify the raw body before any parser. A clock that is off by more than 5 minutes also causes this.',
      };
    case 404:
    case 405:
      return {
        what: `${what} Nothing at this path accepts a POST.`,
        fix: 'Check the path of the URL.',
      };
    case 410:
      return {
        what: 'The receiver returned 410: it wants no more deliveries.',
        fix: 'To resume, make the receiver return 2xx and enable the webhook.',
      };
    case 413:
      return {
        what: `${what} The body is too large for it.`,
        fix: 'Allow bodies of at least 8 MiB, also in proxies in front of it.',
      };
    case 429:
    case 503:
      return {
        what: `${what} It is overloaded or not ready.`,
        fix: 'Deliveries are retried automatically, no sooner than its Retry-After header says. You don’t have to do anything if it recovers.',
      };
    default:
      if (status >= 300 && status < 400) {
        return {
          what: `The receiver redirects (${status}). Signalbox does not follow redirects.`,
          fix: 'Change the URL to the one that it redirects to.',
        };
      }
      if (status >= 500) {
        return {
          what: `The receiver failed with ${status}.`,
          fix: 'Check the receiver’s log. Its response, shown with each attempt, may say why.',
        };
      }
      return { what, fix: 'Only 2xx counts as success. Its response, shown with each attempt, may say why.' };
  }
}
