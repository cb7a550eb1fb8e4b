-- Works with code of schema version 1 and later.

alter table api_keys alter column permission drop not null;
-- What a key without a permission has: its scopes, or the name of a permission if the key is limited to agents. Code that knows neither
-- refuses every request of such a key.
alter table api_keys add column scopes text[];
-- Null: the key may use every agent.
alter table api_keys add column agents uuid[];
