// The operator's own provider keys, for agents in environments without one. SIGNALBOX_PROVIDER_KEYS lists the providers; each key is in
// the provider's usual variable.
import { ownProvider, ownProviders, type ProviderKeyName } from '@signalbox/contract';

/** By environment variable, which is also the name of the secret that takes precedence in an environment. */
export type ProviderKeys = { readonly [K in ProviderKeyName]?: string | undefined };

/** The names that are allowed. */
export const keyProviders = ownProviders.map(({ name }) => name).join(', ');

/** The variables of their keys. */
export const keyVariables: readonly ProviderKeyName[] = ownProviders.map(({ keyName }) => keyName);

/** `text` names providers, separated by commas. Throws an AggregateError that shows no key. */
export function parseProviderKeys(text: string, env: Readonly<Record<string, string | undefined>>): ProviderKeys {
  const names = text.split(',').map((part) => part.trim());
  const problems: Error[] = [];
  const keys: Partial<Record<ProviderKeyName, string>> = {};
  for (const name of names.filter((part) => part !== '')) {
    const variable = ownProvider(name)?.keyName;
    const key = variable && env[variable]?.trim();
    if (variable === undefined) {
      problems.push(new Error(`"${name}" is not a provider with a key; use one or more of ${keyProviders}`));
    } else if (!key) {
      problems.push(new Error(`lists ${name}, but ${variable} is not set`));
    } else if (!isHeaderValue(key)) {
      problems.push(new Error(`lists ${name}, but ${variable} contains characters that are not allowed in a header`));
    } else {
      keys[variable] = key;
    }
  }
  if (problems.length > 0) throw new AggregateError(problems, problems.map(({ message }) => message).join('; '));
  return keys;
}

/** Printable ASCII, without spaces. */
export function isHeaderValue(key: string): boolean {
  return /^[\x21-\x7e]+$/.test(key);
}
