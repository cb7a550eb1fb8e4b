// The operator's own keys of providers, which Agents may use whose Environment has none: SIGNALBOX_PROVIDER_KEYS names the
// providers, the keys stand in the variables that everybody uses for them.
import { ownProvider, ownProviders, type ProviderKeyName } from '@signalbox/contract';

/** By the environment variable of each, which is also the name of the secret that is used if an Environment has one. */
export type ProviderKeys = { readonly [K in ProviderKeyName]?: string | undefined };

/** Those that may be named. */
export const keyProviders = ownProviders.map(({ name }) => name).join(', ');

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
