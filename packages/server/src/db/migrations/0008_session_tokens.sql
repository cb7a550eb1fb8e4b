-- Works with code of schema version 1 and later.

-- The origins of web pages that may call with session tokens.
alter table organizations add column allowed_origins text[] not null default '{}';

-- For an upload with a session token: what the token reaches (keys/session-token.ts). Other tokens can't use the file.
alter table files add column uploaded_by uuid;
