import { type Sleep, sleep } from '../time.ts';

/** A function that has `draw` called once for all of its calls within this time, such as for chunks that arrive together. */
export function gather(draw: () => void, ms: number, wait: Sleep = sleep): () => void {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    wait(ms).then(() => {
      isWaiting = false;
      draw();
    });
  };
}
