-- Works with code of schema version 1 and later.
-- As in the four migrations before.

alter table idempotency_records set (autovacuum_analyze_scale_factor = 0.5);
