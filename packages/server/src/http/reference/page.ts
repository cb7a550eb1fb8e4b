// The API reference, `/docs`: one HTML page, generated from the OpenAPI document and the table of error codes. It has an inline
// style sheet, no script and no external request: it can be served under the strictest policy and saved as a file.
import {
  type ErrorCode,
  errorCodes,
  permissions,
  replayWindowSeconds,
  type SchemaObject,
  type Scope,
  scopeFacts,
  scopes,
  standardHeaders,
} from '@signalbox/contract';
import type { OpenApiDocument, Operation, Parameter } from './openapi.ts';
import { constraints, escapeHtml, fieldList, prose, slug, typeName } from './schema.ts';
import { docsStyle } from './style.ts';

interface Place {
  method: string;
  path: string;
  operation: Operation;
}

/** The origin in the examples; replaced by that of the request when the page is served. */
export const exampleOrigin = 'http://127.0.0.1:4500';

/** The whole page. Problems link to it: each error code is an anchor (`/docs#not_found`). */
export function docsPage(document: OpenApiDocument): string {
  const places = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const byTag = Map.groupBy(places, ({ operation }) => operation.tags[0] ?? '');
  const { title, version, description } = document.info;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} ${escapeHtml(version)} · API reference</title>
<style>${docsStyle}</style>
</head>
<body>
<a class="skip" href="#start">Skip to content</a>
<nav aria-label="Contents">
<a class="brand" href="#start"><span aria-hidden="true"></span>${escapeHtml(title)} <small>${escapeHtml(version)}</small></a>
${navigation(document, byTag)}
</nav>
<main id="start">
<header>
<h1>API reference</h1>
${prose(description)}
<p class="quiet">Machine-readable: <a href="/api/v1/openapi.json"><code>/api/v1/openapi.json</code></a>, OpenAPI ${escapeHtml(document.openapi)}.</p>
</header>
${permissionSection()}
${document.tags.map(({ name, description: text }) => tagSection(document, name, text, byTag.get(name) ?? [])).join('\n')}
${webhookSection(document)}
${errorSection()}
${schemaSection(document)}
</main>
</body>
</html>
`;
}

function navigation(document: OpenApiDocument, byTag: Map<string, Place[]>): string {
  const group = (id: string, name: string, items = '') =>
    `<li><a href="#${id}">${escapeHtml(name)}</a>${items && `<ul>${items}</ul>`}</li>`;
  const operations = (tag: string) =>
    (byTag.get(tag) ?? [])
      .map(
        ({ method, operation: { operationId, summary } }) =>
          `<li><a href="#${operationId}">${methodBadge(method)}<span>${prose(summary, true)}</span></a></li>`,
      )
      .join('');
  return `<ul>
${group('permissions', 'Permissions and scopes')}
${document.tags.map(({ name }) => group(slug(name), name, operations(name))).join('\n')}
${group('webhooks', 'Receiving webhooks')}
${group('errors', 'Errors')}
${group('schemas', 'Objects')}
</ul>`;
}

function permissionSection(): string {
  const allows = {
    read: 'Listing and reading: agents, sessions, approvals, subscriptions, the event log.',
    write:
      'What <code>read</code> allows, and creating agents, opening sessions, resolving approvals, changing resources.',
    admin: 'What <code>write</code> allows, and managing API keys and the secrets of environments.',
  };
  return `<section id="permissions">
<h2>Permissions and scopes</h2>
<p>Each operation needs one scope. A key has a permission, which is a set of scopes, or scopes of its own. If it lacks the scope of a request, the response is 403 <a href="#insufficient_permission"><code>insufficient_permission</code></a>, which names it.</p>
<dl class="table">${permissions.map((name) => `<div><dt>${permissionBadge(name)}</dt><dd>${allows[name]}</dd></div>`).join('')}</dl>
<dl class="table">${scopes.map(scopeEntry).join('')}</dl>
</section>`;
}

function tagSection(document: OpenApiDocument, name: string, text: string, places: Place[]): string {
  return `<section id="${slug(name)}">
<h2>${escapeHtml(name)}</h2>
${prose(text)}
${places.map((place) => operationSection(document, place)).join('\n')}
</section>`;
}

function operationSection(document: OpenApiDocument, { method, path, operation }: Place): string {
  const { operationId, summary, description = '', parameters } = operation;
  return `<article id="${operationId}">
<h3><a href="#${operationId}">${prose(summary, true)}</a></h3>
<p class="call">${methodBadge(method)}<code class="path">${pathHtml(path)}</code>${operation.security[0].apiKey.map(scopeLink).join('')}${permissionBadge(operation['x-permission'])}</p>
${prose(description)}
<div class="columns">
<div>
${parameterList('Path', parameters, 'path')}
${parameterList('Query', parameters, 'query')}
${parameterList('Headers', parameters, 'header')}
${bodyFields(document, operation)}
${responseFields(document, operation)}
<h4>Errors</h4>
<p class="codes">${operation['x-error-codes']
    .filter((code) => !isCommon(code))
    .map((code) => `<a href="#${code}"><code>${code}</code></a>`)
    .join(' ')} <a class="quiet" href="#errors">and the errors of every request</a></p>
</div>
<pre tabindex="0" aria-label="Example with curl"><code>${escapeHtml(curl(method, path, operation))}</code></pre>
</div>
</article>`;
}

function parameterList(heading: string, parameters: Parameter[], place: Parameter['in']): string {
  const items = parameters
    .filter((parameter) => parameter.in === place)
    .map(({ name, required, description, schema }) => {
      const optional = required ? '' : ' <span class="optional">optional</span>';
      const limits = constraints(schema);
      return `<li><code class="name">${escapeHtml(name)}</code> <span class="type">${typeName(schema)}</span>${optional}${description ? `<p>${prose(description, true)}</p>` : ''}${limits && `<p class="limits">${limits}</p>`}</li>`;
    });
  return items.length === 0 ? '' : `<h4>${heading}</h4><ul class="fields">${items.join('')}</ul>`;
}

function bodyFields(document: OpenApiDocument, { requestBody }: Operation): string {
  const schema = requestBody?.content['application/json']?.schema;
  if (!schema) return '';
  const optional = requestBody.required ? '' : ' <span class="optional">optional</span>';
  return `<h4>Body ${typeName(schema)}${optional}</h4>${fieldList(document, schema, Number.POSITIVE_INFINITY)}`;
}

function responseFields(document: OpenApiDocument, { responses }: Operation): string {
  return Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([status, { description, content = {} }]) => {
      const [type, body] = Object.entries(content)[0] ?? [];
      const fields = body ? fieldList(document, body.schema, 2) : '';
      const text = description === 'Done.' || description === 'Created.' ? '' : prose(description);
      const kind = type === 'text/event-stream' ? ` <span class="type">${type}</span>` : '';
      return `<h4>Response ${status}${kind}</h4>${text}${fields}`;
    })
    .join('');
}

/** Whether every request can fail with it: listed once, not for each operation. */
function isCommon(code: ErrorCode): boolean {
  const [status] = errorCodes[code];
  return code === 'invalid_request' || status === 401 || status === 429 || status >= 500;
}

function webhookSection({ webhooks }: OpenApiDocument): string {
  return Object.entries(webhooks)
    .map(([name, { post }]) => {
      const schema = post.requestBody.content['application/json']?.schema as SchemaObject;
      const own = post.parameters.filter(
        ({ name: header }) => !Object.values<string>(standardHeaders).includes(header),
      );
      const standard = post.parameters.filter((parameter) => !own.includes(parameter));
      return `<section id="webhooks">
<h2>Receiving webhooks</h2>
<article>
<h3>${escapeHtml(post.summary)}</h3>
<p class="call">${methodBadge('POST')}<code class="path">your URL</code> <span class="type">${escapeHtml(name)}</span></p>
${prose(post.description)}
<div class="columns">
<div>
${parameterList('Headers', own, 'header')}
<p>The <a href="https://www.standardwebhooks.com/">Standard Webhooks</a> headers are sent too, so its libraries can verify deliveries unchanged:</p>
${parameterList('Standard Webhooks', standard, 'header')}
<h4>Body ${typeName(schema)}</h4>
<h4>Your response</h4>
<dl class="table">${Object.entries(post.responses)
        .map(
          ([status, { description }]) =>
            `<div><dt><code>${status}</code></dt><dd>${prose(description, true)}</dd></div>`,
        )
        .join('')}</dl>
</div>
<pre tabindex="0" aria-label="Checking a delivery with node"><code>${escapeHtml(receiverExample)}</code></pre>
</div>
</article>
</section>`;
    })
    .join('\n');
}

const receiverExample = `import { createServer } from 'node:http';
import { webhooks } from '@signalbox/client';

const receiver = webhooks.receiver({
  secrets: process.env.SIGNING_SECRET,
  onChunks: async (envelope) => {
    // Store it, then return.
  },
});
createServer(receiver.node).listen(8080);

// Or by hand, in any language:
//
// expected = hex(hmac_sha256(
//   key:  signing_secret,
//   text: timestamp + "." + raw_body))
// equal in constant time?
// within ${replayWindowSeconds} s of the clock?`;

function errorSection(): string {
  const rows = Object.entries(errorCodes).map(
    ([code, [status, title]]) =>
      `<div id="${code}"><dt><code>${code}</code> <span class="status">${status}</span></dt><dd>${escapeHtml(title)}.${
        isCommon(code as ErrorCode) ? ' <span class="quiet">Any request.</span>' : ''
      }</dd></div>`,
  );
  return `<section id="errors">
<h2>Errors</h2>
<p>Every error is <code>application/problem+json</code>, a <a href="#schema-Problem">Problem</a>. Branch on <code>code</code>; show <code>detail</code> to people; quote <code>requestId</code> in support requests. For <code>invalid_request</code>, <code>errors</code> names the fields.</p>
<dl class="table">${rows.join('')}</dl>
</section>`;
}

function schemaSection(document: OpenApiDocument): string {
  const articles = Object.entries(document.components.schemas).map(([name, schema]) => {
    const fields = fieldList(document, schema, 1);
    const text = schema.description ? prose(schema.description) : '';
    return `<article id="schema-${name}"><h3><a href="#schema-${name}">${name}</a></h3>${text}${fields || `<p class="type">${typeName(schema)}</p>`}</article>`;
  });
  return `<section id="schemas" class="schemas"><h2>Objects</h2>${articles.join('\n')}</section>`;
}

function curl(method: string, path: string, { parameters, requestBody, responses }: Operation): string {
  const url = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const schema = parameters.find((one) => one.in === 'path' && one.name === name)?.schema;
    return String(schema?.examples?.[0] ?? name);
  });
  const query = parameters
    .filter((one) => one.in === 'query' && one.required)
    .map(({ name, schema }) => `${name}=${schema.examples?.[0] ?? name}`);
  const stream = Object.values(responses).some(({ content }) => content && 'text/event-stream' in content);
  const flags = stream ? ' -N' : method === 'GET' || (method === 'POST' && requestBody) ? '' : ` -X ${method}`;
  const lines = [
    `curl${flags} ${exampleOrigin}${[url, ...query].join('?')}`,
    `-H "Authorization: Bearer $SIGNALBOX_API_KEY"`,
  ];
  const json = requestBody?.content['application/json'];
  if (json) {
    const body = compactJson(json.example);
    lines.push(`-H 'Content-Type: application/json'`, `-d '${body.replaceAll("'", "'\\''")}'`);
  } else if (requestBody) {
    lines.push(`-H 'Content-Type: image/png'`, `-H 'X-Filename: photo.png'`, '--data-binary @photo.png');
  }
  return lines.join(' \\\n  ');
}

/** JSON with short objects and arrays on one line, as people write it. */
function compactJson(value: unknown, indent = '', before = 0): string {
  const line = JSON.stringify(value, null, 1).replaceAll(/\n\s*/g, ' ');
  if (typeof value !== 'object' || value === null || indent.length + before + line.length <= 54) return line;
  const inner = `${indent}  `;
  const items = Array.isArray(value)
    ? value.map((item) => compactJson(item, inner))
    : Object.entries(value).map(([name, item]) => `"${name}": ${compactJson(item, inner, name.length + 4)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}\n${items.map((item) => inner + item).join(',\n')}\n${indent}${close}`;
}

function methodBadge(method: string): string {
  return `<span class="method ${method.toLowerCase()}">${method}</span>`;
}

function scopeEntry(scope: Scope): string {
  const { permission, allows } = scopeFacts[scope];
  const including = permissions.slice(permissions.indexOf(permission)).map(permissionBadge).join(' ');
  return `<div id="${scopeAnchor(scope)}"><dt><code>${scope}</code></dt><dd>To ${escapeHtml(allows)}. ${including}</dd></div>`;
}

function scopeLink(scope: Scope): string {
  return `<a href="#${scopeAnchor(scope)}"><code>${scope}</code></a>`;
}

function scopeAnchor(scope: Scope): string {
  return `scope-${scope.replace(':', '-')}`;
}

function permissionBadge(permission: string): string {
  return `<span class="permission ${permission}">${permission}</span>`;
}

/** Allows line breaks after slashes only, and marks the parameters. */
function pathHtml(path: string): string {
  return escapeHtml(path)
    .replaceAll('/', '/<wbr>')
    .replace(/\{\w+\}/g, (name) => `<var>${name}</var>`);
}
