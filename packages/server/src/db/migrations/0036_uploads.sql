-- Works with code of schema version 1 and later.
-- Room for files is taken before their bytes are stored, and the files of an end user have a share of the storage (files/room.ts). Code of
-- earlier versions takes no room, and its uploads count in no share.

-- Room of the storage that an upload has taken which has not ended.
alter table files add column reserved_bytes bigint not null default 0;
-- Who uploaded it, as `uploadedBy` shows it: `type`, `id` and `name`. Null for a file that a tool created.
alter table files add column uploader jsonb;
-- Uploaded with a session token, and named by no message yet.
alter table files add column is_unsent boolean not null default false;
