-- Works with code of schema version 1 and later.
-- Repeated until it changes no row.
-- Migration 41 makes the same promise in other words, which are not read. Nodes of the previous release find it in this table.

update signalbox_migrations set works_with = 1 where version = 41 and name = 'model_limits' and works_with > 1
