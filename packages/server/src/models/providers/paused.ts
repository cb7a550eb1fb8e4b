// Anthropic pauses a response in which it has searched for a while. Another request with what it has said and found continues it; for
// the caller it is one response.
import type { Ran } from '../../session-rows/ran.ts';
import { type ModelCall, type ModelEvent, PROVIDER_DATA_MAX_CHARACTERS } from '../model/model.ts';
import { NOTHING_USED, sumOf } from '../model/usage.ts';
import type { DataPart, ProviderData } from '../prompt/provider-data.ts';
import { joinedRan } from '../response/ran.ts';

/** A response that is paused more often ends there. */
const PAUSES_MAX = 5;

export async function* continued(
  call: ModelCall,
  ask: (call: ModelCall) => AsyncGenerator<ModelEvent>,
): AsyncGenerator<ModelEvent> {
  const ran: Ran[] = [];
  let usage = NOTHING_USED;
  let text = '';
  let data: ProviderData | undefined;
  let next: ModelCall | undefined = call;
  for (let pauses = 0; next; pauses++) {
    const asked: ModelCall = next;
    next = undefined;
    let said = 0;
    for await (const event of ask(asked)) {
      if (event.type === 'ran') ran.push(event);
      else if (event.type !== 'finish') {
        if (event.type === 'text') said += event.delta.length;
        if (event.type === 'text') text += event.delta;
        yield event;
      } else {
        const { isPaused, providerData, ...end } = event;
        const own = providerData as ProviderData | undefined;
        usage = sumOf(usage, end.usage);
        data = pauses === 0 ? own : joined(data, own, said);
        next = isPaused && pauses < PAUSES_MAX ? afterPause(call, text, data, ran) : undefined;
        if (next) continue;
        if (ran.length > 0) yield { type: 'ran', ...joinedRan(ran) };
        yield { ...end, usage: pauses === 0 ? end.usage : usage, ...(data && { providerData: data }) };
      }
    }
  }
}

/** Undefined: it can't be continued, because what the provider needs back is too long, or it has searched as often as it may. */
function afterPause(
  call: ModelCall,
  text: string,
  providerData: ProviderData | undefined,
  ran: readonly Ran[],
): ModelCall | undefined {
  const { webSearch, transcript } = call;
  if (!providerData?.ranParts || !webSearch) return undefined;
  const { maxUses } = webSearch;
  const left = maxUses === undefined ? undefined : maxUses - ran.reduce((sum, { calls }) => sum + calls.length, 0);
  if (left !== undefined && left <= 0) return undefined;
  return {
    ...call,
    webSearch: { ...webSearch, ...(left !== undefined && { maxUses: left }) },
    transcript: [...transcript, { role: 'assistant', content: [{ type: 'text', text }], providerData }],
    isPaused: true,
  };
}

/** `said`: how many characters the second response has. It has no data if these are all. */
function joined(
  one: ProviderData | undefined,
  other: ProviderData | undefined,
  said: number,
): ProviderData | undefined {
  if (!one) return undefined;
  const plain: DataPart[] = said === 0 ? [] : [{ type: 'text', length: said }];
  const ranParts = [...(one.ranParts ?? one.parts ?? []), ...(other?.ranParts ?? other?.parts ?? plain)];
  const both = { provider: one.provider, model: one.model, ranParts };
  return JSON.stringify(both).length <= PROVIDER_DATA_MAX_CHARACTERS ? both : undefined;
}
