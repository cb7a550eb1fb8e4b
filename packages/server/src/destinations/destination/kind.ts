// What every type of destination has: it decides what becomes due by a record, and sends what is due.
import type { Sql } from 'sql-template-tag';
import type { HealthUpdate } from '../../deliveries/destinations/destination-health.ts';
import type { Platform } from '../../platform.ts';
import type { DestinationAssignment } from './assignments.ts';
import type { LoggedEvent } from './filter.ts';

export type SenderPlatform = Pick<Platform, 'db' | 'clock' | 'log' | 'metrics' | 'tracing' | 'egress'>;

export interface SenderOptions {
  /** The version of the service, for `User-Agent`. */
  version: string;
  /** Returns 0 up to 1; used for the jitter of retries. */
  random: () => number;
  /** The time limit of an attempt; 15 s by default. */
  timeoutMs?: number;
  /** Called when the destination has changed since it was assigned. */
  onStale: () => void;
  /** Called when it takes more again. */
  onRoom: () => void;
  /** Aborts the attempts in flight. */
  signal: AbortSignal;
}

/** Sends to one destination from the node that it is assigned to. */
export interface DestinationSender {
  readonly assignment: DestinationAssignment;
  /** False while it is not assigned to this node, or must not be sent to. */
  readonly isActive: boolean;
  /** Nothing is in flight. */
  readonly isIdle: boolean;
  /** The last attempt was not accepted. */
  readonly isFailing: boolean;
  /** Whether it takes more. If not, records wait in the log. */
  readonly hasRoom: boolean;
  /** So many rows were written. */
  added(count: number): void;
  /** Continues with the destination as it is now. */
  resume(assignment: DestinationAssignment): void;
  /** Starts no further attempt. */
  halt(): void;
  /** Resolves when nothing is in flight. */
  drained(): Promise<void>;
  takeHealth(options?: { isLast?: boolean }): HealthUpdate<DestinationAssignment> | undefined;
  restoreHealth(update: HealthUpdate<DestinationAssignment>): void;
}

export interface DestinationKind {
  /** Writes what these records make due, in the transaction that advances the reading; `rows` says how many it writes. */
  due(assignment: DestinationAssignment, events: readonly LoggedEvent[], now: Date): { statement: Sql; rows: number };
  createSender(platform: SenderPlatform, assignment: DestinationAssignment, options: SenderOptions): DestinationSender;
}
