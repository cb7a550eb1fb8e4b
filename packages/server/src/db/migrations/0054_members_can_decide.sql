-- Works with code of schema version 1 and later.
-- Which approvals a member can decide: the only agents and environments; both null: all that the role lets them decide.
--
-- The role of a limited member is stored as another one, such as 'limited approver'. Code of earlier versions would not know the limit. It
-- knows no such role either, answers each request of such a member with an error, and can't give them a role that it knows.

alter table members
  add column decides_agents uuid[],
  add column decides_environments text[],
  drop constraint members_role_check,
  add constraint members_role_check check (
    case when decides_agents is null and decides_environments is null
      then role in ('viewer', 'approver', 'member', 'admin', 'owner')
      else role in ('limited viewer', 'limited approver', 'limited member')
    end) not valid;

alter table invitations
  add column decides_agents uuid[],
  add column decides_environments text[],
  drop constraint invitations_role_check,
  add constraint invitations_role_check check (
    case when decides_agents is null and decides_environments is null
      then role in ('viewer', 'approver', 'member', 'admin', 'owner')
      else role in ('limited viewer', 'limited approver', 'limited member')
    end) not valid;
