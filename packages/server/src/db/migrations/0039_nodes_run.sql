-- Works with code of schema version 14 and later.

-- Whether the node runs sessions and has a share of what a node leaves that dies or stops (runtime/node/share.ts). False for worker
-- turns, and for nodes of older code, whose share the others take.
alter table nodes add column runs boolean not null default false;
