// What is wrong with an `Authorization` header that has no API key. The text contains nothing of the header.

/** Secrets of this service that are not API keys, and secrets of other services that people send by mistake. */
const others: readonly [pattern: RegExp, what: string][] = [
  [/^whsec_/, 'This is the signing secret of a webhook subscription'],
  [/^sbi_/, 'This is the token of an invitation'],
  [/^sbr_/, 'This is the token of a password reset'],
  [/^sbs_/, 'This is the token of a share link'],
  [/^sk-/, 'This is the API key of a model provider'],
];

/** `length`: of a complete secret. */
export function whatIsWrong(authorization: string, length: number): string {
  const send = 'Send `Authorization: Bearer sbk_…` with the complete secret.';
  const text = authorization.trim();
  const [, bearer] = /^Bearer(?:\s+|$)(.*)$/is.exec(text) ?? [];
  if (bearer === undefined)
    return `${/^["']?sbk_/.test(text) ? 'The word `Bearer` is missing' : 'The scheme is not `Bearer`'}. ${send}`;
  if (bearer === '') return `There is nothing after \`Bearer\`. ${send}`;
  if (/^["'`<]/.test(bearer)) return `There are quotation marks or brackets around the secret. ${send}`;
  if (/\s/.test(bearer)) return `There is white space in the secret. ${send}`;
  const [, other] = others.find(([pattern]) => pattern.test(bearer)) ?? [];
  if (other) return `${other}. ${send}`;
  if (!bearer.startsWith('sbk_')) return `API keys begin with \`sbk_\`. ${send}`;
  if (bearer.length !== length) return `The secret has ${bearer.length} characters instead of ${length}. ${send}`;
  return 'A character of the secret is wrong: its checksum does not match. Copy the secret again.';
}
