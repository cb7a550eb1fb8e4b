-- Works with code of schema version 1 and later.
-- As in the three migrations before.

alter table model_usage set (autovacuum_analyze_scale_factor = 0.5);
alter table session_search set (autovacuum_analyze_scale_factor = 0.5);
