// The request of a tool, filled in with the model's input and the Environment's secrets, each of which goes to the hosts on its
// own list and nowhere else.
import { isAllowedHost, openSecrets } from '../../environments/secrets.ts';
import type { Platform } from '../../platform.ts';
import { createRedaction, type Redact, type Redacted, said } from './redact.ts';
import { type RenderedRequest, type RequestTemplate, renderRequest, secretNames, TemplateError } from './template.ts';
import type { ToolOwner } from './tool.ts';

export interface PreparedRequest extends RenderedRequest {
  /** Takes the secrets that were filled in out of what the server answers. */
  readonly redact: Redact;
}

/** A string says why the request can't be made, in words that may be shown: they name secrets, never values. */
export async function prepareRequest(
  platform: Pick<Platform, 'db' | 'vault'>,
  { organizationId, environment }: ToolOwner,
  template: RequestTemplate,
  given: { input: unknown; inputSchema?: unknown },
): Promise<PreparedRequest | Redacted> {
  const names = secretNames(template);
  const secrets = await openSecrets(platform, organizationId, environment, names).catch(() => null);
  if (secrets === null) return said`${list(names)} could not be read`;
  const missing = names.filter((name) => !secrets.has(name));
  if (missing.length > 0) return said`the Environment has no ${list(missing)}`;

  const values = Object.fromEntries([...secrets].map(([name, { value }]) => [name, value]));
  try {
    const request = renderRequest(template, { ...given, secrets: values });
    const url = new URL(request.url);
    const refused = [...secrets]
      .filter(([, { allowedHosts }]) => !isAllowedHost(allowedHosts, url))
      .map(([name]) => name);
    if (refused.length > 0) return said`${list(refused)} may not be sent to this host`;
    return { ...request, redact: createRedaction(values) };
  } catch (error) {
    // Its words are ours, and name what is missing, never a value.
    if (error instanceof TemplateError) return error.message as Redacted;
    throw error;
  }
}

function list(names: readonly string[]): Redacted {
  return `${names.length === 1 ? 'secret' : 'secrets'} ${names.join(', ')}` as Redacted;
}
