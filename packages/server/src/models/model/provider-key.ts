/** The API key that a request to a provider is sent with. */
export interface ProviderKey {
  readonly name: string;
  readonly value: string;
  /** Where it is set, for the message of a failure. */
  readonly label: string;
}
