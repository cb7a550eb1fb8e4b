-- Works with code of schema version 1 and later.

alter table model_usage_key_days add column web_searches bigint not null default 0;
