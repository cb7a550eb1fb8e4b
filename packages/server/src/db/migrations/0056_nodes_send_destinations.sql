-- Works with code of schema version 1 and later.
-- Nodes of earlier releases don't send to destinations, and leave it false.

alter table nodes
  -- Whether the node sends to destinations and has a share of them (deliveries/destinations/shares.ts).
  add column sends_destinations boolean default false not null;
