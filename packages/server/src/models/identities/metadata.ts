/**
 * The servers that a cloud has on each machine, at fixed addresses and over http, which give any program there the machine's identity.
 *
 * They have an egress of their own, whose policy allows these addresses. That of organizations refuses them, and shares no connection
 * with this one. No proxy is used: it would ask from another machine.
 */
import type { EgressOptions } from '../../egress/egress.ts';
import { createEgress, OPERATOR } from '../../egress/egress.ts';
import { EgressError } from '../../egress/errors.ts';
import type { EgressRequest, EgressResponse } from '../../egress/exchange.ts';
import { parseEgressAllow } from '../../egress/policy.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdentityVariables } from '../../vault/cloud-identities.ts';
import { RESPONSE_MAX_BYTES, requireSuccess, type TokenIssuer } from '../keys/token-request.ts';
import { ModelFailure } from '../model/model.ts';

export interface MetadataService extends TokenIssuer {
  /** What an operator can do if it does not respond. */
  readonly unreachable: string;
}

export interface Metadata {
  /**
   * The response, whose status is a success. Throws `ModelFailure`, whose message is for the operator: `model_unavailable` if the service
   * does not respond, which is remembered for some seconds.
   */
  request(
    service: MetadataService,
    request: Pick<EgressRequest, 'url' | 'method' | 'headers'> & { readonly timeoutMs?: number },
  ): Promise<EgressResponse>;
  close(): Promise<void>;
}

/** The service is on the machine, or one hop away. */
const CONNECT_TIMEOUT_MS = 1_000;
/** Azure and Google request a token elsewhere before they respond. */
const TIMEOUT_MS = 10_000;
const UNREACHABLE_KEPT_MS = 10_000;

/** The servers of EC2, Google Cloud and Azure; those in networks of IPv6 of EC2 and of Google Cloud; that of tasks of ECS. */
const FIXED = ['169.254.169.254:80', '[fd00:ec2::254]:80', '[fd20:ce::254]:80', '169.254.170.2:80'];

/** `ways`: for tests, as of `createEgress`. */
export function createMetadata(
  variables: IdentityVariables,
  { clock, ...ways }: { clock: Pick<Clock, 'now'> } & Pick<EgressOptions, 'lookup' | 'open'>,
): Metadata {
  const { AWS_CONTAINER_CREDENTIALS_FULL_URI: container, IDENTITY_ENDPOINT: app } = variables;
  const named = [container, app].flatMap((url) => (url === undefined ? [] : [hostAndPort(url)]));
  const policy = parseEgressAllow([...FIXED, ...named].join(','));
  const egress = createEgress({ ...ways, policy, connectTimeoutMs: CONNECT_TIMEOUT_MS });
  const silent = new Map<string, { until: number; failure: ModelFailure }>();

  return {
    async request(service, { url, timeoutMs = TIMEOUT_MS, ...request }) {
      const { origin } = new URL(url);
      const known = silent.get(origin);
      if (known && known.until > clock.now().getTime()) throw known.failure;
      const limits = { timeoutMs, maxResponseBytes: RESPONSE_MAX_BYTES, repeatable: true };
      const response = await egress
        .of(OPERATOR)
        .request({ ...request, url, ...limits })
        .catch((error: unknown) => {
          if (!(error instanceof EgressError) || error.kind === 'aborted') throw error;
          const why = `${service.name} does not respond (${error.message}): ${service.unreachable}`;
          const failure = new ModelFailure('model_unavailable', why, { retryable: true });
          silent.set(origin, { until: clock.now().getTime() + UNREACHABLE_KEPT_MS, failure });
          throw failure;
        });
      silent.delete(origin);
      requireSuccess(response, service);
      return response;
    },
    close: () => egress.close(),
  };
}

/** As an entry of SIGNALBOX_EGRESS_ALLOW. */
function hostAndPort(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port || 80}`;
}
