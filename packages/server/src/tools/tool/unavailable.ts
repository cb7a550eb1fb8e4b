import type { UnavailableServer } from './tool.ts';

/** The text that the model gets about a server whose tools could not be listed. */
export function unavailableText({ name, reason }: UnavailableServer): string {
  return `The tools of "${name}" are not available at present: ${reason}`;
}
