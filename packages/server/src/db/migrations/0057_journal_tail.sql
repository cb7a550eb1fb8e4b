-- Works with code of schema version 1 and later.

-- Text that was committed and is in no segment yet (journal/tail.ts): a row for each flush of a node, with the text of all its sessions
-- of an organization. What is before a session's `next_seq` is in segments as well.
create table journal_tail (
  organization_id uuid not null,
  node_id uuid not null,
  flush bigint not null,
  -- One item each for a session: its id, the seq of its last chunk, and its chunks, as in `segments.body`.
  session_ids uuid[] not null,
  seq_tos bigint[] not null,
  bodies text[] not null,
  created_at timestamptz not null,
  primary key (organization_id, node_id, flush)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000, autovacuum_analyze_scale_factor = 100);

-- The node that may have text of the session in the tail, and the flush after which it is. Null if there is none.
alter table sessions add column tail_node uuid;
alter table sessions add column tail_from bigint;

-- Whether the node reads the tail. Others do not write to it while a node without this is running.
alter table nodes add column reads_tail boolean not null default false;
