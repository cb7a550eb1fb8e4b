import { errorCodes, permissionOf, type Route, routes } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { openApiDocument } from './openapi.ts';
import { docsPage } from './page.ts';

const document = openApiDocument(routes, '0.1.0');
const page = docsPage(document);
const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);

test('every link within the page has a target, and no anchor is duplicated', () => {
  expect(new Set(ids).size).toBe(ids.length);
  const targets = new Set([...page.matchAll(/ href="#([^"]+)"/g)].map(([, target]) => target));
  expect([...targets].filter((target) => !ids.includes(target))).toEqual([]);
});

test('every operation, every object and every error code has an anchor: the `type` of a Problem leads to it', () => {
  expect(ids).toEqual(expect.arrayContaining(Object.keys(routes)));
  expect(ids).toEqual(expect.arrayContaining(Object.keys(errorCodes)));
  expect(ids).toEqual(expect.arrayContaining(Object.keys(document.components.schemas).map((name) => `schema-${name}`)));
});

test('it works under a policy without scripts and other sources', () => {
  expect(page).not.toMatch(/<(script|link|img|iframe|object|embed|form|base)\b|\bon\w+=|\bstyle=|@import|url\(|src=/i);
  const outside = [...page.matchAll(/ href="(?!#)([^"]+)"/g)].map(([, target]) => target);
  expect(new Set(outside)).toEqual(new Set(['/api/v1/openapi.json', 'https://www.standardwebhooks.com/']));
});

test('its tags are closed in the order in which they were opened', () => {
  const open: string[] = [];
  for (const [, close, name = ''] of page.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*>/g)) {
    if (['meta', 'wbr'].includes(name)) continue;
    if (close) expect(open.pop()).toBe(name);
    else open.push(name);
  }
  expect(open).toEqual([]);
});

test('text of the document is escaped, never parsed as HTML', () => {
  const hostile = openApiDocument(
    { getMe: { ...routes.getMe, summary: '<script>alert("a")</script> `<b>`' } },
    '"><img src=x>',
  );
  const html = docsPage(hostile);
  expect(html).not.toMatch(/<script|<img|<b>/);
  expect(html).toContain('&lt;script&gt;alert(&quot;a&quot;)&lt;/script&gt; <code>&lt;b&gt;</code>');
});

test('every operation shows its permission, its scope, its path and a curl command', () => {
  for (const [name, route] of Object.entries<Route>(routes)) {
    const [article = ''] = page.slice(page.indexOf(`<article id="${name}">`)).split('</article>', 1);
    expect(article).toContain(`class="permission ${permissionOf(route)}"`);
    if (route.scope !== 'any') expect(article).toContain(`<code>${route.scope}</code></a>`);
    expect(article).toContain('Authorization: Bearer $SIGNALBOX_API_KEY');
    const path = article.match(/<code class="path">(.*?)<\/code>/)?.[1]?.replaceAll(/<\/?(wbr|var)>/g, '');
    expect(path).toBe(`/api/v1${route.path}`);
  }
});
