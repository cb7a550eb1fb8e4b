-- Files: uploaded by a caller, or created by a tool of a session (files/).
--
-- A row is inserted before the first byte. purge_after says whether the file exists: it is null from the end of the upload until the
-- file is deleted. Any other row is what an upload left behind, or a deleted file, and is removed with its bytes after that time.
create table files (
  organization_id uuid not null,
  file_id uuid not null,
  environment text not null,
  -- Where the bytes are: `database`, in file_pieces, or the name of another store.
  store text not null,
  -- Null until the upload has ended.
  filename text,
  media_type text,
  bytes bigint,
  sha256 bytea,
  -- The session in which a tool created it.
  session_id uuid,
  purge_after timestamptz,
  -- When it was last known to be in use, to within a day.
  used_at timestamptz not null,
  created_at timestamptz not null,
  primary key (organization_id, file_id)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index files_by_environment on files (organization_id, environment, file_id) where purge_after is null;
create index files_by_session on files (organization_id, session_id) where session_id is not null;
create index files_unused on files (organization_id, used_at) where purge_after is null;
create index files_purge on files (purge_after) where purge_after is not null;

-- The bytes of a file, in order, each piece but the last of 1 MiB. They are not compressed: most media already are, and a part of an
-- uncompressed value is read without the rest.
create table file_pieces (
  organization_id uuid not null,
  file_id uuid not null,
  position integer not null,
  bytes bytea not null,
  primary key (organization_id, file_id, position)
) with (autovacuum_vacuum_scale_factor = 0.02);
alter table file_pieces alter column bytes set storage external;

-- Which sessions and schedules name which files. There is no foreign key: a row may outlive its file, and goes with its holder.
create table file_uses (
  organization_id uuid not null,
  -- A session or a schedule.
  holder_id uuid not null,
  file_id uuid not null,
  primary key (organization_id, holder_id, file_id)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index file_uses_by_file on file_uses (organization_id, file_id);

-- The size of all files of the organization together.
alter table organizations add column file_bytes bigint not null default 0;
