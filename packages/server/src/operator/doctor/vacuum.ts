// Whether autovacuum keeps up with the transaction ids. Each change that is committed uses one of 2 billion. Autovacuum has to freeze rows
// before their transaction is that old, and begins to when one is `autovacuum_freeze_max_age` transactions old.
import { failed, ok, warning } from './check.ts';

// Two thirds of the way to the point at which PostgreSQL refuses writes.
const FAILURE_AGE = 1_400_000_000;
// Freezing takes a while, during which further ids are used.
const BEHIND = 2;

/** `age`: of the oldest transaction id that is not frozen. `freezeAge`: the setting. Both in transactions. */
export function findingOfVacuum({ on, age, freezeAge }: { on: string; age: number; freezeAge: number }) {
  if (on !== 'on')
    return failed('autovacuum is off', 'Turn it on: without it the database grows without limit and stops.');
  const isOld = `the oldest transaction id is ${age} transactions old; at 2 billion, PostgreSQL stops`;
  const causes = 'Look for long transactions and inactive replication slots';
  if (age > FAILURE_AGE) return failed(isOld, `${causes}, and run vacuum freeze.`);
  if (age > BEHIND * freezeAge)
    return warning(
      `${isOld}, and autovacuum was to freeze it at ${freezeAge}`,
      `${causes}, and let autovacuum work faster: autovacuum_vacuum_cost_limit, autovacuum_max_workers.`,
    );
  return ok('autovacuum is on');
}
