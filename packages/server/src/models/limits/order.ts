// The order of the calls that wait for a limit: those a person waits for first, and between them each of the others in its turn.

/** How many calls that a person waits for go before the next of the others, if there is one. */
export const MOST_PASSED = 4;

export interface Placed<Call> {
  call: Call;
  /** How many have gone in a row, with this one, while another waited. */
  passed: number;
}

/** Both in the order in which they began to wait. `passed`: how many have gone in a row before. */
export function inOrder<Call>(awaited: readonly Call[], others: readonly Call[], passed: number): Placed<Call>[] {
  const placed: Placed<Call>[] = [];
  let [nextAwaited, nextOther] = [0, 0];
  while (nextAwaited < awaited.length || nextOther < others.length) {
    const isOtherWaiting = nextOther < others.length;
    if (nextAwaited === awaited.length || (isOtherWaiting && passed >= MOST_PASSED)) {
      passed = 0;
      placed.push({ call: others[nextOther++]!, passed });
    } else {
      passed = isOtherWaiting ? passed + 1 : 0;
      placed.push({ call: awaited[nextAwaited++]!, passed });
    }
  }
  return placed;
}
