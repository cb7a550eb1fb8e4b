-- Works with code of schema version 1 and later.

-- The secret before the last rotation works until its time. It is also in retired_key_secrets, with that time.
alter table api_keys add column old_secret_hash bytea;
alter table api_keys add column old_secret_preview text;
alter table api_keys add column old_secret_expires_at timestamptz;
