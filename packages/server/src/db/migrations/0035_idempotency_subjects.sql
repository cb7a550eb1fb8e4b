-- Works with code of schema version 14 and later.

-- The sessions, files and end users that the request or its response names, so that erasing an end user finds it. Null in rows of older code.
alter table idempotency_records add column subjects text[];
