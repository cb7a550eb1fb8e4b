import type { ReactNode } from 'react';

export type Tone = 'good' | 'warn' | 'bad' | 'live';

/** A state as a word. Color and shape only support it. */
export function Badge({ tone, children }: { tone?: Tone | undefined; children: ReactNode }) {
  return <span className={tone ? `badge ${tone}` : 'badge'}>{children}</span>;
}

const tones: Record<string, Tone> = {
  running: 'live',
  waiting: 'warn',
  completed: 'good',
  failed: 'bad',
  pending: 'warn',
  approved: 'good',
  denied: 'bad',
  expired: 'bad',
  enabled: 'good',
  paused: 'warn',
  disabled: 'bad',
  opened: 'good',
  missed: 'warn',
  success: 'good',
  failure: 'bad',
  acknowledged: 'good',
  delivered: 'good',
  succeeded: 'good',
  failing: 'warn',
  degraded: 'bad',
  healthy: 'good',
  exhausted: 'bad',
};

/** A status as the API names it, of a session, approval, subscription, delivery or event. */
export function Status({ value }: { value: string }) {
  return <Badge tone={tones[value]}>{value}</Badge>;
}
