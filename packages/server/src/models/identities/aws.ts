// The identity at AWS: a role that a token of the cluster is exchanged for (AssumeRoleWithWebIdentity), or that the machine has
// (aws-metadata.ts). What it gets is an access key for some hours, here in the JSON that the keys of environments are in.

import { regionOf, signingKey } from '../keys/access-key.ts';
import { type AccessToken, noToken } from '../keys/access-tokens.ts';
import { FORM, requestToken } from '../keys/token-request.ts';
import { containerRole, instanceRole } from './aws-metadata.ts';
import { type CloudIdentity, type IdentitySource, tokenInFile, unusable } from './identity.ts';

const USUAL_REGION = 'us-east-1';
const ISSUER = { name: 'AWS STS', label: 'the role of AWS_ROLE_ARN' };

const webIdentity: IdentitySource = {
  mark: 'AWS_WEB_IDENTITY_TOKEN_FILE',
  isHere: ({ AWS_WEB_IDENTITY_TOKEN_FILE: file }) => file !== undefined,
  async request({ variables, egress }, region) {
    const { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: role, AWS_ROLE_SESSION_NAME: session } = variables;
    if (file === undefined || role === undefined) throw unusable('AWS_WEB_IDENTITY_TOKEN_FILE is not set');
    const form = new URLSearchParams({
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: role,
      RoleSessionName: session ?? 'signalbox',
      WebIdentityToken: await tokenInFile(file, 'AWS_WEB_IDENTITY_TOKEN_FILE'),
    });
    const url = `https://sts.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}/`;
    const headers = { ...FORM, Accept: 'text/xml' };
    return keyIn(await requestToken(egress, ISSUER, { method: 'POST', url, headers, body: form.toString() }));
  },
};

export const awsIdentity: CloudIdentity = {
  // A key is for all regions. The nearest server of STS issues it; other sources have one server.
  audienceOf(baseUrl, variables) {
    const { AWS_REGION: region, AWS_DEFAULT_REGION: other } = variables;
    return webIdentity.isHere(variables, undefined) ? (region ?? other ?? regionOf(baseUrl) ?? USUAL_REGION) : '';
  },
  sources: [webIdentity, containerRole, instanceRole],
  none: 'neither AWS_WEB_IDENTITY_TOKEN_FILE nor AWS_CONTAINER_CREDENTIALS_FULL_URI is set, and this is not known to be an instance of EC2 (if it is one, set AWS_EC2_METADATA_SERVICE_ENDPOINT=http://169.254.169.254)',
  keyOf: signingKey,
};

/** In the XML of STS. None of these values needs an escape. */
function keyIn(xml: string): AccessToken {
  const [, credentials = ''] = /<Credentials>([\s\S]*?)<\/Credentials>/.exec(xml) ?? [];
  const parts = Array.from(credentials.matchAll(/<(\w+)>\s*([\x21-\x7e]+?)\s*<\/\1>/g), ([, name = '', value = '']) => [
    name,
    value,
  ]);
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration = '' } = Object.fromEntries(parts);
  const expiresAt = Date.parse(Expiration);
  if (!AccessKeyId || !SecretAccessKey || !SessionToken || Number.isNaN(expiresAt)) throw noToken(ISSUER.name);
  return { value: JSON.stringify({ AccessKeyId, SecretAccessKey, SessionToken }), expiresAt };
}
