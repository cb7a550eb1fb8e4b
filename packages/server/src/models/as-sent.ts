// The request of a model call in the form of its provider, for people who debug it. The provider's own package builds it, from the same
// options as when it was sent; nothing is sent, and the key is not read: its name is shown instead.
import { type SentRequest, usualKeyName } from '@signalbox/contract';
import type { LeftOutTool } from '../session-rows/operation-trace.ts';
import { shownSecrets } from '../tools/request/shown-secrets.ts';
import type { ModelCall } from './model/model.ts';
import { removeNoKey } from './model/provider-key.ts';
import { withoutRefused } from './model/refused-parameters.ts';
import { targetOf } from './model/targets.ts';
import { placeholderFiles } from './prompt/prompt-files.ts';
import { providerOf } from './providers/providers.ts';
import { baseUrlOf, unsentRequest } from './providers/request.ts';
import { sentTools } from './tools/tools.ts';

/** Headers of the package's current version, which may not be that of the request. */
const LEFT_OUT = ['user-agent'];

export interface AsSent {
  request: SentRequest;
  /** How many contents of files are replaced by a placeholder. */
  files: number;
  /** Tools that are not in it, because its server would refuse them. */
  leftOut: readonly LeftOutTool[];
}

/** Null: nothing is sent to a model of this provider. */
export async function requestAsSent(call: ModelCall): Promise<AsSent | null> {
  const provider = providerOf(call.config.provider);
  if (!provider || call.config.model === undefined) return null;
  const baseUrl = baseUrlOf(call);
  const files = placeholderFiles(call);
  const sent = await unsentRequest(provider, call, files);
  if (!sent) return null;
  const { url, init } = sent;
  for (const [name, value] of baseUrl.searchParams) url.searchParams.append(name, value);
  const [keyHeader, keyPrefix] = provider.keyHeader;
  const keyName = call.config.apiKeySecret ?? usualKeyName(provider.name);
  const request = shownSecrets(keyName === undefined ? [] : [keyName], (markOf) => {
    const headers = new Headers(init.headers);
    removeNoKey(headers);
    for (const name of [keyHeader, ...LEFT_OUT]) headers.delete(name);
    if (keyName !== undefined) headers.set(keyHeader, keyPrefix + markOf(keyName));
    return {
      method: init.method ?? 'POST',
      url: url.href,
      headers: Object.fromEntries(headers),
      body: typeof init.body === 'string' ? withoutRefused(init.body, call.withoutParameters ?? []) : null,
    };
  });
  const { leftOut } = sentTools(targetOf(provider.name, baseUrl), call.tools);
  return { request, files: files.count, leftOut };
}
