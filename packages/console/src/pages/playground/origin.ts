// The turn that the playground repeats: what its session said then, and what that took.
import { useApiQuery } from '../../data/organization.tsx';
import type { Compared } from './comparison.tsx';
import { messagesOfTurn, readTurn } from './entry.ts';
import { measuresOf } from './measures.ts';
import type { Playground } from './state.ts';

/** Undefined while it loads, if it is gone, and if no turn is repeated. */
export function useOriginal(origin: Playground['origin']): Compared | undefined {
  const { sessionId, turn } = origin ?? {};
  const { data } = useApiQuery(
    ['sessions', sessionId, 'turns', 'original', turn],
    async (client): Promise<Compared> => {
      const [messages, read] = await Promise.all([
        messagesOfTurn(client, sessionId!, turn!),
        readTurn(client, sessionId!, turn!),
      ]);
      const content = messages.flatMap((message) => (message.role === 'assistant' ? message.content : []));
      const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n');
      return { name: 'Original', text, measures: measuresOf(read ? [read] : []) };
    },
    { enabled: origin !== null },
  );
  return origin ? data : undefined;
}
