// Reasoning and the input of tool calls while a model writes them. Models send both a few characters at a time, and as chunks these
// would take many times the room of what they say. They are therefore gathered into longer pieces, each part by itself because the
// inputs of several calls can alternate. The first piece of a part is shown at once: it says that the part has begun.
import { storableText } from '../lib/text.ts';
import type { ModelEvent } from '../models/model/model.ts';

export type EarlyPart = Extract<ModelEvent, { type: 'reasoning' | 'toolInput' }>;

/** Some 16 tokens: a few pieces a second, as fast as anyone reads. */
const MIN_CHARACTERS = 64;

export interface EarlyParts {
  /** Takes a piece; returns what is to be shown now. */
  add(part: EarlyPart): EarlyPart[];
  /** Returns what is left, because something else follows. */
  rest(): EarlyPart[];
}

export function createEarlyParts(): EarlyParts {
  const gathered = new Map<string, EarlyPart>();
  const begun = new Set<string>();

  return {
    add(part) {
      const key = part.type === 'reasoning' ? part.type : part.operationId;
      const before = gathered.get(key);
      const text = (before?.delta ?? '') + part.delta;
      // Half of a character waits for its other half.
      const isHalf = /[\ud800-\udbff]$/.test(text);
      const isShown = !isHalf && (!begun.has(key) || text.length >= MIN_CHARACTERS);
      if (isShown) begun.add(key);
      gathered.set(key, { ...part, delta: isShown ? '' : text });
      return isShown ? shown([{ ...part, delta: text }]) : [];
    },
    rest() {
      const parts = [...gathered.values()];
      for (const [key, part] of gathered) gathered.set(key, { ...part, delta: '' });
      return shown(parts);
    },
  };
}

function shown(parts: readonly EarlyPart[]): EarlyPart[] {
  return parts.map((part) => ({ ...part, delta: storableText(part.delta) })).filter(({ delta }) => delta !== '');
}
