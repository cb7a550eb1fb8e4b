-- Works with code of schema version 1 and later.

-- For people who debug a step. Of a model call: when its first token arrived and which attempts failed. Of a call of an `http` or `mcp`
-- tool: the head of the server's response, without secrets. What was sent is not stored, because it follows from the agent's version
-- and the transcript.
alter table operations add column trace json;
