-- Works with code of schema version 1 and later.
-- Where readers of the log begin to look for pending records (events/sequencer.ts). Older code does not move it: then they find more.

alter table event_heads add column pending_from uuid default '00000000-0000-0000-0000-000000000000' not null;
