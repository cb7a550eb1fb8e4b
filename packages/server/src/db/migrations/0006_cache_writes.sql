-- Works with code of schema version 1 and later.

-- Input tokens that were written to a provider's cache, which some providers charge more for.
alter table sessions add column cache_write_tokens bigint not null default 0;
alter table model_usage add column cache_write_tokens bigint not null default 0;
alter table model_usage_days add column cache_write_tokens bigint not null default 0;
