-- Works with code of schema version 1 and later.
-- Code of earlier versions leaves the searches out of the sums that it makes.

alter table analytics add column web_searches bigint not null default 0;
