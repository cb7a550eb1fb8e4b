/** Passed to a provider's package as its key, so that it doesn't look for one in the environment. The connection removes it. */
export const NO_KEY = 'set-by-the-connection';

/** Removes what a package has put in place of a key, in whichever header. */
export function removeNoKey(headers: Headers): void {
  for (const [name, value] of [...headers]) if (value.includes(NO_KEY)) headers.delete(name);
}

/** The API key that a request to a provider is sent with. */
export interface ProviderKey {
  readonly name: string;
  readonly value: string;
  /** Where it is set, for the message of a failure. */
  readonly label: string;
  /** The headers that authenticate a request. Default: the value in the provider's own header. */
  readonly headers?: (request: OutgoingRequest) => Promise<Readonly<Record<string, string>>>;
  /** Whether it is no part of any request, because it signs them. */
  readonly isOnlySigning?: true;
  /** The hosts that it may be sent to besides the one that it was found for. */
  readonly allowedHosts?: readonly string[];
  /** The server refuses it. Returns whether the next call gets another one, which may be accepted. */
  readonly expire?: () => boolean;
}

/** A key that is sent as a bearer token, whatever the provider's header for keys is. */
export function bearerKey({ name, value, label }: ProviderKey): ProviderKey {
  return { name, value, label, headers: async () => ({ authorization: `Bearer ${value}` }) };
}

/** What a signature can depend on. */
export interface OutgoingRequest {
  readonly method: string;
  readonly url: URL;
  /** All that the request has so far. */
  readonly headers: Headers;
  readonly body: string;
}

/** Authenticates a request. Whatever its package has set in place of a key is removed. */
export async function authenticate(
  request: OutgoingRequest,
  key: ProviderKey | undefined,
  [header, prefix]: readonly [name: string, prefix: string],
): Promise<void> {
  const { headers } = request;
  removeNoKey(headers);
  headers.delete(header);
  if (key === undefined) return;
  const own = key.headers ? await key.headers(request) : { [header]: prefix + key.value };
  for (const [name, value] of Object.entries(own)) headers.set(name, value);
}
