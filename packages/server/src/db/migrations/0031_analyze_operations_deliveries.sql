-- Works with code of schema version 1 and later.
-- As in the two migrations before.

alter table operations set (autovacuum_analyze_scale_factor = 0.5);
alter table webhook_deliveries set (autovacuum_analyze_scale_factor = 0.5);
