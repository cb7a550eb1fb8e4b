// The introduction of the OpenAPI document, in Markdown: what all operations have in common.
import { errorCodes, permissions, scopeFacts, scopes } from '@signalbox/contract';

const general = `Signalbox is a platform for running agents. An agent runs in sessions; a session streams what it does, waits for approvals, and completes.

Every request needs \`Authorization: Bearer <API key>\`. Bodies are JSON in UTF-8, at most 1 MiB, except for uploads; unknown fields are refused, by name. Times are ISO 8601 in UTC. Every response has an \`X-Request-Id\`. HEAD works wherever GET does, and returns the headers only.

## Lists

Lists return \`{ data, page: { hasMore, nextCursor } }\`: while \`hasMore\` is true, pass \`nextCursor\` as \`cursor\`. It is always the position to continue from, so keep it if you poll.

## Idempotency

A POST can have an \`Idempotency-Key\`, which is kept for 24 hours. If you repeat the request with the same key and body, it has no further effect and returns the first response with \`Idempotent-Replayed: true\`. Bodies are the same if they are the same JSON, regardless of the order of their fields; above 64 KiB they must have the same bytes. The response body is that of the first request, including the \`requestId\` of an error; \`X-Request-Id\` is that of the repetition.`;

/** The whole introduction. */
export function description(): string {
  return [general, permissionSection(), errorSection()].join('\n\n');
}

function permissionSection(): string {
  const rows = scopes.map((scope) => {
    const { permission, allows } = scopeFacts[scope];
    const including = permissions.slice(permissions.indexOf(permission)).map((name) => `\`${name}\``);
    return `| \`${scope}\` | ${allows} | ${including.join(', ')} |`;
  });
  return `## Permissions and scopes

Each operation needs one scope. A key has a permission (\`${permissions.join('`, `')}\`), which is a set of scopes, or scopes of its own. If it lacks the scope of a request, the response is 403 \`insufficient_permission\`, which names it.

| scope | allows to | in |
|---|---|---|
${rows.join('\n')}`;
}

function errorSection(): string {
  const rows = Object.entries(errorCodes).map(([code, [status, title]]) => `| \`${code}\` | ${status} | ${title} |`);
  return `## Errors

Every error is \`application/problem+json\`. Branch on \`code\`; show \`detail\` to people; quote \`requestId\` in support requests. For \`invalid_request\`, \`errors\` names the fields.

| code | status | meaning |
|---|---|---|
${rows.join('\n')}`;
}
