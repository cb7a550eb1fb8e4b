-- Works with code of schema version 1 and later.

-- Searches of the web that the models' providers ran, which they charge for apart from tokens.
alter table sessions add column web_searches bigint not null default 0;
alter table model_usage add column web_searches bigint not null default 0;
