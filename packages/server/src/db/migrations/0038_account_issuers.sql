-- Works with code of schema version 14 and later.

-- The issuer whose id the account has. The same id of another issuer is another person. Null until the first sign-in after an upgrade.
alter table accounts add column issuer text;
