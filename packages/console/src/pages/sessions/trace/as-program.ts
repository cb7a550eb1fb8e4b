// A request as a program that sends it again. Names of environment variables are in place of secrets; every other text is quoted, because
// a model or a customer wrote parts of it.
import type { SentRequest } from '@signalbox/client';

/** For bash and zsh. */
export function asCurl({ method, url, headers, body, secrets }: SentRequest): string {
  const quoted = (text: string) =>
    pieces(text, secrets)
      .map(({ text, secret }) => (secret ? `"$${secret}"` : text === '' ? '' : `'${text.replaceAll("'", `'\\''`)}'`))
      .join('') || "''";
  return [
    `curl -X ${method} ${quoted(url)}`,
    ...headers.map(({ name, value }) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === null ? [] : [`--data-raw ${quoted(body)}`]),
  ].join(' \\\n  ');
}

/** For Node, Deno and Bun. */
export function asTypeScript({ method, url, headers, body, secrets }: SentRequest): string {
  const quoted = (text: string) =>
    pieces(text, secrets)
      .filter(({ text, secret }) => secret || text !== '')
      .map(({ text, secret }) => (secret ? `process.env.${secret}` : JSON.stringify(text)))
      .join(' + ') || "''";
  const lines = headers.map(({ name, value }) => `    ${JSON.stringify(name)}: ${quoted(value)},`);
  return [
    `const response = await fetch(${quoted(url)}, {`,
    `  method: ${JSON.stringify(method)},`,
    '  headers: {',
    ...lines,
    '  },',
    ...(body === null ? [] : [`  body: ${quoted(body)},`]),
    '});',
    'console.log(response.status, await response.text());',
    '',
  ].join('\n');
}

interface Piece {
  readonly text: string;
  /** It is this secret. */
  readonly secret?: string;
}

function pieces(text: string, secrets: SentRequest['secrets']): Piece[] {
  return secrets.reduce<Piece[]>(
    (found, { name, shownAs }) =>
      found.flatMap((piece) =>
        piece.secret
          ? [piece]
          : piece.text
              .split(shownAs)
              .flatMap((part, index): Piece[] => [...(index > 0 ? [{ text: '', secret: name }] : []), { text: part }]),
      ),
    [{ text }],
  );
}
