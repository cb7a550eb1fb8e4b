// The roles of AWS that a machine gets from its metadata service: of a container (a task of ECS, a pod with EKS Pod Identity), and of the
// instance of EC2, by the second version of its service only.
import type { EgressResponse } from '../../egress/exchange.ts';
import { type AccessToken, noToken } from '../keys/access-tokens.ts';
import { recordIn } from '../keys/token-request.ts';
import { type IdentityContext, type IdentitySource, tokenInFile, unusable } from './identity.ts';

const TASKS = 'http://169.254.170.2';
const CONTAINER = {
  name: 'The credentials server of the container',
  label: 'its role',
  unreachable: 'check the task role of ECS, or the EKS Pod Identity Agent on this node',
  advice: {
    401: 'check AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
    403: 'check AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE and the role of the task or of the pod’s service account',
    404: 'give the task, or the pod’s service account, a role',
  },
};

export const containerRole: IdentitySource = {
  mark: 'AWS_CONTAINER_CREDENTIALS_FULL_URI or AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  isHere: ({ AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: relative, AWS_CONTAINER_CREDENTIALS_FULL_URI: full }) =>
    relative !== undefined || full !== undefined,
  async request({ variables, metadata }) {
    const { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: relative, AWS_CONTAINER_CREDENTIALS_FULL_URI: full } = variables;
    const { AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file, AWS_CONTAINER_AUTHORIZATION_TOKEN: token } = variables;
    const url = relative === undefined ? full : `${TASKS}${relative}`;
    if (url === undefined) throw unusable(`${containerRole.mark} is not set`);
    const authorization =
      file === undefined ? token : await tokenInFile(file, 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE');
    const headers = {
      Accept: 'application/json',
      ...(authorization !== undefined && { Authorization: authorization }),
    };
    const { body } = await metadata.request(CONTAINER, { method: 'GET', url, headers });
    return keyIn(body, CONTAINER.name);
  },
};

const SESSION_SECONDS = '300';
/** It responds at once. If it does not, the response can't reach a container, because it may take one hop only. */
const SESSION_TIMEOUT_MS = 1_500;
const INSTANCE = {
  name: 'The metadata service of EC2',
  label: 'the role of this instance',
  unreachable:
    'in a container, the instance’s hop limit must be 2 (aws ec2 modify-instance-metadata-options --http-put-response-hop-limit 2); also check firewalls and network policies',
  advice: {
    401: 'check that nothing between this machine and the service changes the request',
    403: 'it is turned off for this instance, or a proxy passes the request on',
    404: 'attach a role to the instance (an instance profile)',
  },
};

export const instanceRole: IdentitySource = {
  mark: 'the role of this instance of EC2',
  isHere: ({ AWS_EC2_METADATA_DISABLED: disabled, ...variables }, machine) =>
    (disabled ?? 'false').toLowerCase() === 'false' &&
    (machine === 'aws' ||
      variables.AWS_EC2_METADATA_SERVICE_ENDPOINT !== undefined ||
      variables.AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE !== undefined),
  async request(context) {
    const roles = `${serverOf(context)}/latest/meta-data/iam/security-credentials/`;
    const session = await context.metadata.request(INSTANCE, {
      method: 'PUT',
      url: `${serverOf(context)}/latest/api/token`,
      headers: { 'X-aws-ec2-metadata-token-ttl-seconds': SESSION_SECONDS },
      timeoutMs: SESSION_TIMEOUT_MS,
    });
    const headers = { 'X-aws-ec2-metadata-token': textIn(session, /^[\x21-\x7e]{1,1000}$/) };
    const named = await context.metadata.request(INSTANCE, { method: 'GET', url: roles, headers });
    const role = textIn(named, /^[\w+=,.@-]{1,64}$/);
    const { body } = await context.metadata.request(INSTANCE, { method: 'GET', url: `${roles}${role}`, headers });
    return keyIn(body, INSTANCE.name);
  },
};

function serverOf({ variables }: IdentityContext): string {
  const { AWS_EC2_METADATA_SERVICE_ENDPOINT: endpoint, AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE: mode } = variables;
  const usual = mode?.toLowerCase() === 'ipv6' ? 'http://[fd00:ec2::254]' : 'http://169.254.169.254';
  return endpoint?.replace(/\/$/, '') ?? usual;
}

function textIn({ body }: EgressResponse, form: RegExp): string {
  const text = body.toString('utf8').trim();
  if (!form.test(text)) throw noToken(INSTANCE.name);
  return text;
}

function keyIn(body: Buffer, from: string): AccessToken {
  const { Code, AccessKeyId, SecretAccessKey, Token, Expiration } = recordIn(body.toString('utf8'));
  const expiresAt = Date.parse(String(Expiration));
  const isWhole = [AccessKeyId, SecretAccessKey, Token].every((part) => typeof part === 'string' && part !== '');
  // The service of instances says so with the status 200.
  if (Code !== undefined && Code !== 'Success')
    throw unusable(`${from} has no valid key of its role: check the role’s trust policy`);
  if (!isWhole || Number.isNaN(expiresAt)) throw noToken(from);
  return { value: JSON.stringify({ AccessKeyId, SecretAccessKey, SessionToken: Token }), expiresAt };
}
