// A request as it is shown to people: built with a mark in place of each secret, so its values are not even read. The model may have
// written what looks like a placeholder, so a mark is replaced by one that occurs nowhere else in the request: a command
// that is made of the request has the secret only where it was.
import { randomBytes } from 'node:crypto';
import type { SentRequest } from '@signalbox/contract';
import type { RenderedRequest } from './template.ts';

export function shownSecrets(
  names: readonly string[],
  build: (markOf: (name: string) => string) => RenderedRequest,
): SentRequest {
  // Letters and digits: no encoding changes them.
  const marks = new Map(names.map((name) => [name, `x${randomBytes(16).toString('hex')}x`]));
  const { method, url, headers, body } = build((name) => marks.get(name)!);
  const whole = JSON.stringify([url, headers, body]);
  const shown = names.map((name) => ({ name, shownAs: placeholder(name, whole), mark: marks.get(name)! }));
  const show = (text: string) => shown.reduce((so, { mark, shownAs }) => so.replaceAll(mark, shownAs), text);
  return {
    method,
    url: show(url),
    headers: Object.entries(headers).map(([name, value]) => ({ name, value: show(value) })),
    body: body === null ? null : show(body),
    secrets: shown.map(({ name, shownAs }) => ({ name, shownAs })),
  };
}

function placeholder(name: string, whole: string): string {
  for (let count = 1; ; count += 1) {
    const shownAs = `{{secrets.${name}${count === 1 ? '' : `#${count}`}}}`;
    if (!whole.includes(shownAs)) return shownAs;
  }
}
