// The operator's own keys of providers, which Agents may use whose Environment has none: SIGNALBOX_PROVIDER_KEYS names the
// providers, the keys stand in the variables that everybody uses for them.

/** By provider: the environment variable of its key, which is also the name of the secret that stands before it. */
export const keyNames = {
  openai: 'OPENAI_API_KEY',
  anthropic: 'ANTHROPIC_API_KEY',
  google: 'GOOGLE_GENERATIVE_AI_API_KEY',
} as const;
type KeyName = (typeof keyNames)[keyof typeof keyNames];

export type ProviderKeys = { readonly [K in KeyName]?: string | undefined };

/** `text` names providers, separated by commas. Throws an AggregateError that shows no key. */
export function parseProviderKeys(text: string, env: Readonly<Record<string, string | undefined>>): ProviderKeys {
  const names = text.split(',').map((part) => part.trim());
  const problems: Error[] = [];
  const keys: Partial<Record<KeyName, string>> = {};
  for (const name of names.filter((part) => part !== '')) {
    const variable = Object.hasOwn(keyNames, name) ? keyNames[name as keyof typeof keyNames] : undefined;
    const key = variable && env[variable]?.trim();
    if (variable === undefined) {
      const known = Object.keys(keyNames).join(', ');
      problems.push(new Error(`"${name}" is not a provider with a key; use one or more of ${known}`));
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
