-- Works with code of schema version 1 and later.

alter table model_usage_days add column web_searches bigint not null default 0;
alter table model_usage_end_user_days add column web_searches bigint not null default 0;
