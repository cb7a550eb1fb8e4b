/** What a user pastes or attaches, as the service accepts it. */
import type { Content } from '../types.generated.ts';

/** Without NUL, which no database of text can store, and which PDF viewers and terminals put into what is copied from them. */
export function sendableText(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
}

export function sendable(content: Content): Content {
  if (typeof content === 'string') return sendableText(content);
  return content.map((part) => (part.type === 'text' ? { ...part, text: sendableText(part.text) } : part));
}
