-- Works with code of schema version 1 and later.
-- Code of earlier versions knows no approver, and answers each request of one with an error.

alter table members
  drop constraint members_role_check,
  add constraint members_role_check check (role in ('viewer', 'approver', 'member', 'admin', 'owner')) not valid;

alter table invitations
  drop constraint invitations_role_check,
  add constraint invitations_role_check check (role in ('viewer', 'approver', 'member', 'admin', 'owner')) not valid;
