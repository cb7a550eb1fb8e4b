-- Fallback models, and sessions that wait for a model.

-- For a model call with a response: `provider/model` of the model that gave it, which may be a fallback of the agent's own. Null in
-- rows of an earlier release: it was the agent's own.
alter table operations add column model text;
-- For a model call whose session waits, or waited, because no model was available: since when.
alter table operations add column unavailable_since timestamptz;
