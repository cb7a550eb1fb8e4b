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
}
