// The request of a tool: its template, filled in with the model's input, the end user and secrets of the environment. Each secret is only sent
// to the hosts on its own list.
import { isAllowedHost, openSecrets } from '../../environments/secrets.ts';
import type { Platform } from '../../platform.ts';
import { createRedaction, type Redact, type Redacted, trustedText } from '../tool/redact.ts';
import type { ToolOwner } from '../tool/tool.ts';
import { type RenderedRequest, renderRequest, TemplateError } from './template.ts';
import { type RequestTemplate, secretNames } from './template-texts.ts';

export interface PreparedRequest extends RenderedRequest {
  /** Removes the secrets that were filled in from the server's response. */
  readonly redact: Redact;
  /** Whether all secrets that were filled in may be sent to this URL. */
  mayReceive(url: URL): boolean;
}

/** A string is the reason why the request can't be built. It may be shown: it contains names of secrets, never values. */
export async function prepareRequest(
  platform: Pick<Platform, 'db' | 'vault'>,
  { organizationId, environment, endUser }: ToolOwner,
  template: RequestTemplate,
  given: { input: unknown; inputSchema?: unknown },
): Promise<PreparedRequest | Redacted> {
  const names = secretNames(template);
  const secrets = await openSecrets(platform, organizationId, environment, names).catch(() => null);
  if (secrets === null) return trustedText`${list(names)} could not be read`;
  const missing = names.filter((name) => !secrets.has(name));
  if (missing.length > 0) return trustedText`the environment has no ${list(missing)}`;

  const values = Object.fromEntries([...secrets].map(([name, { value }]) => [name, value]));
  try {
    const request = renderRequest(template, { ...given, secrets: values, endUser });
    const url = new URL(request.url);
    const refusedAt = (url: URL) =>
      [...secrets].filter(([, { allowedHosts }]) => !isAllowedHost(allowedHosts, url)).map(([name]) => name);
    const refused = refusedAt(url);
    if (refused.length > 0) return trustedText`${list(refused)} may not be sent to this host`;
    return { ...request, redact: createRedaction(values), mayReceive: (url) => refusedAt(url).length === 0 };
  } catch (error) {
    // The message is ours. It names what is missing, never a value.
    if (error instanceof TemplateError) return error.message as Redacted;
    throw error;
  }
}

function list(names: readonly string[]): Redacted {
  return `${names.length === 1 ? 'secret' : 'secrets'} ${names.join(', ')}` as Redacted;
}
