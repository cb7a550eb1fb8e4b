-- Works with code of schema version 1 and later.
-- As in the migration before.

alter table sessions set (autovacuum_analyze_scale_factor = 0.5);
alter table messages set (autovacuum_analyze_scale_factor = 0.5);
