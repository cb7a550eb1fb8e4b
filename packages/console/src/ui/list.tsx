import { SkeletonRows } from './skeleton.tsx';

/** In place of a list that is loading. */
export function Loading() {
  return <SkeletonRows />;
}
