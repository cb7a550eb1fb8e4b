-- Works with code of schema version 1 and later.
-- For the share of an end user, or of a session without one, in the storage (files/room.ts), and for unsent files (files/retention.ts).

create index concurrently files_by_uploader on files (organization_id, is_unsent, coalesce(uploader->>'id', uploaded_by::text))
  where uploaded_by is not null;
