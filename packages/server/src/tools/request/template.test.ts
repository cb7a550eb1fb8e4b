import type { EndUser } from '@signalbox/contract';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { anyText } from '../../../test/support/any-text.ts';
import { checkTemplate, foreignPlaceholders, renderRequest, TemplateError } from './template.ts';
import { type RequestTemplate, secretNames } from './template-texts.ts';

const get = (url: string): RequestTemplate => ({ method: 'GET', url });
const post = (body: unknown, headers: Record<string, string> = {}): RequestTemplate => ({
  method: 'POST',
  url: 'https://api.example.com/',
  headers,
  body,
});
const render = (template: RequestTemplate, input: unknown, secrets: Record<string, string> = {}) =>
  renderRequest(template, { input, secrets, endUser: null });

/** As JavaScript inserts a value. */
const literal = (name: string) => `\${${name}}`;

test.each<[string, RequestTemplate, string, string | undefined]>([
  ['a template literal in the url', get(`https://example.com/${literal('order')}/x`), 'url', literal('order')],
  ['a path of OpenAPI', get('https://example.com/{order}/{{input.x}}'), 'url', '{order}'],
  ['a brace that was left over', get('https://example.com/{{input.x}}}'), 'url', '}'],
  ['a template literal in a header', post({}, { 'X-A': `a ${literal('input.x')}` }), 'headers.X-A', literal('input.x')],
  ['a single brace in the body', post({ a: ['Bearer {secrets.TOKEN}'] }), 'body.a.0', '{secrets.TOKEN}'],
  ['other braces in the body', post({ a: `Dear ${literal('name')}, {"input": {}} {x}` }), 'body.a', undefined],
])('a placeholder of another notation is found: %s', (_title, template, path, quoted) => {
  const message = `has ${quoted}, which is not a placeholder: write it as {{input.x}}, {{secrets.NAME}} or {{session.endUser.id}}`;
  expect(foreignPlaceholders(template)).toEqual(quoted === undefined ? [] : [{ path, message }]);
});

describe('checkTemplate refuses, and names the place', () => {
  test.each<[string, RequestTemplate, string]>([
    ['a placeholder as scheme', get('{{input.scheme}}://example.com/'), 'url'],
    ['a placeholder as url', get('{{input.url}}'), 'url'],
    ['a placeholder as host', get('https://{{input.host}}/'), 'url'],
    ['a placeholder in the host', get('https://{{secrets.REGION}}.example.com/'), 'url'],
    ['a placeholder after the host', get('https://example.com{{input.x}}/'), 'url'],
    ['a placeholder as port', get('https://example.com:{{input.port}}/'), 'url'],
    ['a placeholder as user info', get('https://{{secrets.USER}}@example.com/'), 'url'],
    ['a placeholder in a fragment', get('https://example.com/#{{input.x}}'), 'url'],
    ['a url that does not parse', get('https://exa mple.com/'), 'url'],
    ['a url without a host', get('https:///{{input.x}}'), 'url'],
    ['another scheme', get('ftp://example.com/'), 'url'],
    ['a backslash', get('https://example.com/\\{{input.x}}'), 'url'],
    ['half a percent-encoding', get('https://example.com/%2{{input.x}}'), 'url'],
    ['a placeholder of nothing', get('https://example.com/{{x}}'), 'url'],
    ['an unfinished placeholder', get('https://example.com/{{input.x'), 'url'],
    ['spaces', get('https://example.com/?a={{ input.x }}'), 'url'],
    ['an empty path', get('https://example.com/{{input}}'), 'url'],
    ['an empty name', get('https://example.com/{{input.a..b}}'), 'url'],
    ['a secret in lower case', get('https://example.com/{{secrets.name}}'), 'url'],
    ['a path into a secret', get('https://example.com/{{secrets.NAME.x}}'), 'url'],
    ['something else of the session', get('https://example.com/{{session.metadata.x}}'), 'url'],
    ['something else of the end user', get('https://example.com/{{session.endUser.secret}}'), 'url'],
    ['a path into the id of the end user', get('https://example.com/{{session.endUser.id.x}}'), 'url'],
    ['the whole end user', get('https://example.com/{{session.endUser}}'), 'url'],
    ['a malformed placeholder in a header', post({}, { 'X-A': '{{input}}' }), 'headers.X-A'],
    ['a line break in a header', post({}, { 'X-A': 'a\r\nb' }), 'headers.X-A'],
    ['an invalid header name', post({}, { 'X A': 'a' }), 'headers.X A'],
    ['a header of the connection', post({}, { Host: 'example.com' }), 'headers.Host'],
    ['a malformed placeholder in the body', post({ items: [{ name: 'x {{input}}' }] }), 'body.items.0.name'],
    ['a placeholder in a name', post({ '{{input.x}}': 1 }), 'body'],
    ['a body that claims to be JSON', post('{"n": {{input.n}}}', { 'Content-Type': 'application/json' }), 'body'],
    ['a body that can’t be sent', { method: 'GET', url: 'https://example.com/', body: {} }, 'body'],
  ])('%s', (_title, template, path) => {
    expect(checkTemplate(template).map((problem) => problem.path)).toContain(path);
  });

  test('braces that are not a placeholder, and quotes them', () => {
    const [problem] = checkTemplate(post({ a: 'x {{ input.x }} and more' }));
    expect(problem).toMatchObject({
      path: 'body.a',
      message: expect.stringMatching(/^holds \{\{ input\.x \}\}, which is/),
    });
  });

  test('a body that is nested too deeply, without exhausting the stack', () => {
    const deep = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
    expect(checkTemplate(post(deep))).toEqual([
      { path: `body${'.0'.repeat(64)}`, message: 'is nested deeper than 64 levels' },
    ]);
  });

  test('at most 20 problems, however many there are', () => {
    expect(checkTemplate(post(Array(3_000).fill('{{a')))).toHaveLength(20);
  });

  test('nothing in a template that uses every feature', () => {
    const template = {
      method: 'POST',
      url: 'https://api.example.com:8443/v1/{{input.a.b-c}}/x%20y/pre-{{input.list.0}}?q={{input.q}}&k={{secrets.KEY}}',
      headers: { Authorization: 'Bearer {{secrets.TOKEN}}', 'Content-Type': 'application/json' },
      body: { text: 'Hello {{input.name}}, }} { {', n: '{{input.n}}', fixed: [1, true, null] },
    };
    expect(checkTemplate(template)).toEqual([]);
    expect(secretNames(template)).toEqual(['KEY', 'TOKEN']);
  });
});

describe('the end user of the session', () => {
  const withUser = (template: RequestTemplate, endUser: EndUser | null, input: unknown = {}) =>
    renderRequest(template, { input, secrets: {}, endUser });
  const template: RequestTemplate = {
    method: 'POST',
    url: 'https://example.com/users/{{session.endUser.id}}/notes?name={{session.endUser.name}}',
    headers: { 'X-User': '{{session.endUser.id}}', 'X-Name': '{{session.endUser.name}}' },
    body: {
      user: '{{session.endUser.id}}',
      name: '{{session.endUser.name}}',
      text: 'By {{session.endUser.id}}: {{input.x}}',
    },
  };

  test('is filled in like any other value: it changes nothing around it', () => {
    expect(checkTemplate(template)).toEqual([]);
    const endUser = { id: 'a/b?c&d"', name: 'Ada "A" & co' };
    const { url, headers, body } = withUser(template, endUser, { x: '{{session.endUser.name}}' });
    expect(url).toBe('https://example.com/users/a%2Fb%3Fc%26d%22/notes?name=Ada%20%22A%22%20%26%20co');
    expect(headers).toMatchObject({ 'X-User': endUser.id, 'X-Name': endUser.name });
    // What the model wrote is a text, also if it looks like a placeholder.
    expect(JSON.parse(body!)).toEqual({
      user: endUser.id,
      name: endUser.name,
      text: `By ${endUser.id}: {{session.endUser.name}}`,
    });
  });

  test('is not taken from the input of the model', () => {
    const input = { session: { endUser: { id: 'another' } }, endUser: { id: 'another' } };
    expect(withUser(post('{{session.endUser.id}}'), { id: 'mine' }, input).body).toBe('"mine"');
  });

  test('that has no name leaves out what consists only of the name', () => {
    const { url, headers, body } = withUser(template, { id: 'u1' }, { x: 1 });
    expect([url, headers['X-Name']]).toEqual(['https://example.com/users/u1/notes', undefined]);
    expect(JSON.parse(body!)).toEqual({ user: 'u1', text: 'By u1: 1' });
    const greeting = post({ text: 'Dear {{session.endUser.name}}' });
    expect(() => withUser(greeting, { id: 'u1' })).toThrow('session.endUser.name is missing');
  });

  test('that the session does not have is an error, also where an optional value would be left out', () => {
    for (const one of [
      get('https://example.com/?user={{session.endUser.id}}'),
      post({ user: '{{session.endUser.id}}' }),
      post({}, { 'X-User': '{{session.endUser.id}}' }),
    ]) {
      expect(() => withUser(one, null)).toThrow('session.endUser.id is missing: the session has no end user');
    }
  });

  test('whose id is not allowed at its place is an error', () => {
    expect(() => withUser(get('https://example.com/{{session.endUser.id}}/x'), { id: '..' })).toThrow(TemplateError);
    for (const id of ['a\r\nX-Admin: 1', '日本']) {
      expect(() => withUser(post({}, { 'X-User': '{{session.endUser.id}}' }), { id })).toThrow(TemplateError);
    }
  });
});

describe('secretNames', () => {
  test('finds each name once, wherever it is used', () => {
    const template = {
      method: 'POST',
      url: 'https://example.com/{{secrets.C}}?{{secrets.C}}',
      headers: { 'X-A': '{{secrets.A}}{{input.x}}' },
      body: { deep: [{ er: 'x{{secrets.B}}' }], input: '{{input.secrets.Z}}' },
    };
    expect(secretNames(template)).toEqual(['A', 'B', 'C']);
    expect(secretNames(get('https://example.com/'))).toEqual([]);
    expect(secretNames(post('{{secrets.D}}', { 'content-type': 'text/plain' }))).toEqual(['D']);
  });
});

describe('renderRequest', () => {
  test('fills in path, query, headers and body', () => {
    const template = {
      method: 'PUT',
      url: 'https://api.example.com/users/{{input.user.id}}?q={{input.q}}&n={{input.list.1}}',
      headers: { Authorization: 'Bearer {{secrets.TOKEN}}' },
      body: {
        note: 'Hi {{input.q}}',
        n: '{{input.list}}',
        b: '{{input.yes}}',
        z: '{{input.none}}',
        k: '{{secrets.TOKEN}}',
      },
    };
    const input = { user: { id: 'a b/c' }, q: 'x&y=z #1+2', list: [1, 2.5], yes: true, none: null };
    expect(render(template, input, { TOKEN: 's3cret' })).toEqual({
      method: 'PUT',
      url: 'https://api.example.com/users/a%20b%2Fc?q=x%26y%3Dz%20%231%2B2&n=2.5',
      headers: { Authorization: 'Bearer s3cret', 'content-type': 'application/json' },
      body: '{"note":"Hi x&y=z #1+2","n":[1,2.5],"b":true,"z":null,"k":"s3cret"}',
    });
  });

  test('does not search values for placeholders', () => {
    const input = { x: '{{secrets.TOKEN}}' };
    const { url, body } = render(
      { ...post({ a: '{{input.x}}', b: 'b {{input.x}}' }), url: 'https://e.com/{{input.x}}' },
      input,
      {
        TOKEN: 's3cret',
      },
    );
    expect(`${url} ${body}`).not.toContain('s3cret');
  });

  test.each<[string, RequestTemplate, unknown, string | null, string | undefined]>([
    ['no body', post(undefined), {}, null, undefined],
    ['JSON', post([1]), {}, '[1]', 'application/json'],
    ['JSON null', post(null), {}, 'null', 'application/json'],
    ['JSON under another type', post({ a: 1 }, { 'Content-Type': 'application/vnd.x+json' }), {}, '{"a":1}', undefined],
    ['a lone placeholder', post('{{input.x}}'), { x: { a: 1 } }, '{"a":1}', 'application/json'],
    ['text', post('a {{input.x}}'), { x: 'b"' }, 'a b"', 'text/plain; charset=utf-8'],
    ['a lone placeholder as text', post('{{input.x}}', { 'content-type': 'text/csv' }), { x: 'a,b' }, 'a,b', undefined],
    [
      'a form',
      post('a={{input.x}}&b=c', { 'Content-Type': 'application/x-www-form-urlencoded' }),
      { x: '1&admin=true' },
      'a=1%26admin%3Dtrue&b=c',
      undefined,
    ],
    [
      'JSON as text',
      post('{"a": "x {{input.x}}", "n": "{{input.n}}"}', { 'Content-Type': 'application/json; charset=utf-8' }),
      { x: '", "admin": "true', n: 5 },
      '{"a":"x \\", \\"admin\\": \\"true","n":5}',
      undefined,
    ],
  ])('body: %s', (_title, template, input, body, contentType) => {
    expect(checkTemplate(template)).toEqual([]);
    const rendered = render(template, input);
    expect([rendered.body, rendered.headers['content-type'] ?? undefined]).toEqual([
      body,
      contentType ?? template.headers?.['content-type'],
    ]);
  });

  test.each<[string, RequestTemplate, unknown, string]>([
    ['a missing value', get('https://e.com/{{input.a.b}}'), { a: {} }, 'input.a.b is missing'],
    ['a value below a string', get('https://e.com/{{input.a.b}}'), { a: 'text' }, 'input.a.b is missing'],
    ['no input at all', get('https://e.com/{{input.a}}'), undefined, 'input.a is missing'],
    ['an inherited value', get('https://e.com/{{input.constructor.name}}'), {}, 'input.constructor.name is missing'],
    ['a prototype', post({ a: '{{input.__proto__}}' }), {}, 'input.__proto__ is missing'],
    ['a missing secret', get('https://e.com/?{{secrets.KEY}}'), {}, 'the secret KEY is missing'],
    [
      'an object in a url',
      get('https://e.com/{{input.a}}'),
      { a: { b: 'hidden' } },
      'input.a is not a string, number or boolean',
    ],
    ['null in a text', post({ a: 'x {{input.a}}' }), { a: null }, 'input.a is null'],
  ])('%s is named', (_title, template, input, message) => {
    expect(() => render(template, input)).toThrow(new TemplateError(message));
  });

  describe('an optional value that was left out', () => {
    const inputSchema = {
      type: 'object',
      properties: {
        x: { type: 'string' },
        y: {},
        who: { type: 'object', properties: { id: {} }, required: ['id'] },
        list: { type: 'array', items: {} },
      },
    };
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const without = (template: RequestTemplate, input: object) =>
      renderRequest(template, { input, inputSchema, secrets: {}, endUser: null });

    test.each([
      ['https://e.com/a?x={{input.x}}&y={{input.y}}&z=1', { y: 2 }, 'https://e.com/a?y=2&z=1'],
      ['https://e.com/a?x={{input.x}}', {}, 'https://e.com/a'],
      ['https://e.com/a?x={{input.x}}&', {}, 'https://e.com/a?'],
      ['https://e.com/a?id={{input.who.id}}&n={{input.list.0}}', { list: [] }, 'https://e.com/a'],
      ['https://e.com/a?x={{input.x}}', { x: '' }, 'https://e.com/a?x='],
    ])('omits its query parameter: %s', (url, input, expected) => {
      expect(without(get(url), input).url).toBe(expected);
    });

    test('omits its form parameter, its header, and its member of a JSON object', () => {
      expect(without(post('x={{input.x}}&z=1', form), {}).body).toBe('z=1');
      expect(without(post('x={{input.x}}', form), {}).body).toBe('');
      const template = post({ x: '{{input.x}}', deep: [{ y: '{{input.y}}', z: null }] }, { 'X-X': '{{input.x}}' });
      expect(without(template, {})).toMatchObject({
        headers: { 'content-type': 'application/json' },
        body: '{"deep":[{"z":null}]}',
      });
      expect(without(template, {}).headers).not.toHaveProperty('X-X');
      expect(without(post({}, { 'Content-Type': '{{input.x}}' }), {}).headers).toEqual({
        'content-type': 'application/json',
      });
    });

    test.each<[string, RequestTemplate]>([
      ['in the path', get('https://e.com/{{input.x}}')],
      ['inside other text of a parameter', get('https://e.com/?a=a{{input.x}}')],
      ['next to another in a parameter', get('https://e.com/?a={{input.x}}{{input.y}}')],
      ['as a parameter without a name', get('https://e.com/?{{input.x}}')],
      ['in the name of a parameter', get('https://e.com/?{{input.x}}={{input.x}}')],
      ['inside other text of a header', post({}, { 'X-A': 'a {{input.x}}' })],
      ['inside other text of a body', post({ a: 'a {{input.x}}' })],
      ['in an array, in which other items would move', post({ a: ['{{input.x}}', 1] })],
      ['as the whole body', post('{{input.x}}')],
      ['in plain text', post('{{input.x}}', { 'content-type': 'text/plain' })],
    ])('is an error %s', (_title, template) => {
      expect(() => without(template, {})).toThrow(new TemplateError('input.x is missing'));
    });

    test('is an error if the schema has no property of that name', () => {
      expect(() => without(post({ a: '{{input.xx}}' }), {})).toThrow(new TemplateError('input.xx is missing'));
      expect(() => without(get('https://e.com/?a={{input.who.name}}'), {})).toThrow(TemplateError);
      expect(() => without(post({ a: '{{input.constructor}}' }), {})).toThrow(TemplateError);
    });
  });

  test('an unchecked template still cannot change the destination', () => {
    for (const url of [
      'https://{{input.x}}/',
      'https://e.com{{input.x}}/',
      'https://e.com:{{input.x}}/',
      '{{input.x}}',
    ]) {
      expect(() => render(get(url), { x: 'evil.example.com' })).toThrow(TemplateError);
    }
  });

  test.each(['a\r\nX-Evil: b', 'a\nb', 'a\rb', 'a\0b', 'snow ☃'])(
    'a header refuses %j, and does not quote it',
    (value) => {
      const template = post({}, { 'X-A': 'v {{input.x}} {{secrets.KEY}}' });
      const [byInput, bySecret] = [
        () => render(template, { x: value }, { KEY: 'k' }),
        () => render(template, { x: 'x' }, { KEY: value }),
      ];
      expect(byInput).toThrow(/^input\.x contains a line break/);
      expect(bySecret).toThrow(/^secrets\.KEY contains a line break/);
      expect(bySecret).not.toThrow(value);
    },
  );

  test.each(['', '.', '..', '../admin', 'a/../b', '..\\admin', 'a/.', '/..', '\\..\\'])(
    'a path refuses to climb by %j',
    (x) => {
      expect(() => render(get('https://e.com/users/{{input.x}}/edit'), { x })).toThrow(/^input\.x would result in/);
      expect(() => render(get('https://e.com/users/{{input.x}}'), { x })).toThrow(TemplateError);
    },
  );

  test.each([
    ['.{{input.x}}', '.'],
    ['{{input.x}}{{input.x}}', '.'],
    ['%2e{{input.x}}', '.'],
    ['{{input.x}}%2E', '.'],
    ['..%2f{{input.x}}', 'a'],
  ])('nor together with the text next to it: %s with %j', (segment, x) => {
    expect(() => render(get(`https://e.com/a/${segment}/b`), { x })).toThrow(TemplateError);
  });

  test.each([
    ['%2e%2e', '%252e%252e'],
    ['...', '...'],
    ['a..b', 'a..b'],
    ['a/b', 'a%2Fb'],
    ['a//b', 'a%2F%2Fb'],
    ['a?b#c', 'a%3Fb%23c'],
    [';@:', '%3B%40%3A'],
    ['\ud800', '%EF%BF%BD'],
    ['ü', '%C3%BC'],
    ["!'()*", '%21%27%28%29%2A'],
  ])('a path contains %j as %s', (x, encoded) => {
    expect(render(get('https://e.com/users/{{input.x}}/edit'), { x }).url).toBe(`https://e.com/users/${encoded}/edit`);
  });
});

describe('a request has at most 1 MiB, counted while it is filled in', () => {
  const many = 1_000;
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  test.each<[string, RequestTemplate]>([
    ['text of a JSON body', post(Array(many).fill('x{{input.a}}'))],
    ['values of a JSON body', post(Array(many).fill('{{input.a}}'))],
    ['members of a JSON body', post({ a: { b: Array(many).fill({ c: '{{input.a}}' }) } })],
    ['a text', post('{{input.a}},'.repeat(many))],
    ['a form', post('a={{input.a}}&'.repeat(many), form)],
    ['a header', post({}, { 'X-A': '{{input.a}}'.repeat(700) })],
    ['several headers', post({}, Object.fromEntries([1, 2, 3, 4, 5, 6].map((n) => [`X-${n}`, '{{input.a}}'])))],
    ['a url', get(`https://example.com/?${'a={{input.a}}&'.repeat(140)}`)],
    [
      'url, headers and body together',
      { ...post(['{{input.a}}', '{{input.a}}'], { 'X-A': '{{input.a}}' }), url: 'https://e.com/{{input.a}}' },
    ],
  ])('%s', (_title, template) => {
    const value = 'a'.repeat(300_000);
    const encode = vi.spyOn(Buffer, 'byteLength');
    expect(() => render(template, { a: value })).toThrow('the request would be longer than 1048576 bytes');
    const filledIn = encode.mock.calls.filter(([text]) => String(text).length >= value.length);
    encode.mockRestore();
    expect(filledIn.length).toBeLessThan(10);
  });

  test('in bytes, with the escapes of JSON and of a url', () => {
    const [fits, not] = [1024 * 1024 - 200, 1024 * 1024];
    expect(render(post('{{input.a}}'), { a: 'a'.repeat(fits) }).body).toHaveLength(fits + 2);
    expect(() => render(post('{{input.a}}'), { a: 'a'.repeat(not) })).toThrow(TemplateError);
    expect(() => render(post('{{input.a}}'), { a: 'ä'.repeat(fits / 2 + 200) })).toThrow(TemplateError);
    expect(() => render(post(['x{{input.a}}']), { a: '\u0001'.repeat(fits / 2) })).toThrow(TemplateError);
    expect(() => render(get('https://example.com/{{input.a}}'), { a: ' '.repeat(fits / 2) })).toThrow(TemplateError);
  });
});

describe('values never change the structure', () => {
  /** Texts with characters that could break out somewhere, and any other text. */
  const text = fc.oneof(
    anyText(),
    fc
      .array(
        fc.constantFrom(
          '.',
          '..',
          '/',
          '\\',
          '%',
          '%2e',
          '%2f',
          '?',
          '#',
          '&',
          '=',
          '@',
          ':',
          '\r\n',
          '\t',
          ' ',
          '"',
          '{{',
          '}}',
          'a',
        ),
      )
      .map((pieces) => pieces.join('')),
  );
  const rendered = (template: RequestTemplate, input: unknown) => {
    try {
      return render(template, input);
    } catch (error) {
      expect(error).toBeInstanceOf(TemplateError);
      return undefined;
    }
  };

  test('of a url: the origin, the segments of its path around a value, and the names of its parameters', () => {
    const template = get('https://api.example.com:8443/v1/{{input.x}}/pre-{{input.y}}/end?a={{input.x}}&b={{input.y}}');
    fc.assert(
      fc.property(text, text, (x, y) => {
        const result = rendered(template, { x, y });
        if (result === undefined) return;
        const url = new URL(result.url);
        expect([url.origin, url.username, url.hash]).toEqual(['https://api.example.com:8443', '', '']);
        const segments = url.pathname.split('/');
        expect([segments.length, segments[1], segments[4]]).toEqual([5, 'v1', 'end']);
        expect(decodeURIComponent(segments[2] ?? '')).toBe(x.toWellFormed());
        expect(decodeURIComponent(segments[3] ?? '')).toBe(`pre-${y.toWellFormed()}`);
        expect([...url.searchParams]).toEqual([
          ['a', x.toWellFormed()],
          ['b', y.toWellFormed()],
        ]);
      }),
      { numRuns: 2000 },
    );
  });

  test('of a path that servers decode first', () => {
    fc.assert(
      fc.property(text, (x) => {
        const result = rendered(get('https://example.com/a/{{input.x}}/b'), { x });
        if (result === undefined) return;
        const decoded = decodeURIComponent(new URL(result.url).pathname).replaceAll('\\', '/');
        expect(decoded.split('/').some((segment) => segment === '.' || segment === '..')).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  test('of headers: one line each', () => {
    fc.assert(
      fc.property(text, (x) => {
        const result = rendered(post({}, { 'X-A': '{{input.x}}' }), { x });
        if (result !== undefined) expect(result.headers['X-A']).toMatch(/^[\t\u0020-\u007e\u0080-\u00ff]*$/);
      }),
    );
  });

  test('of a JSON body, given as a value or as text', () => {
    const value = { a: '{{input.x}}', b: ['x {{input.x}}'] };
    for (const template of [post(value), post(JSON.stringify(value), { 'Content-Type': 'application/json' })]) {
      fc.assert(
        fc.property(text, (x) => {
          expect(JSON.parse(render(template, { x }).body ?? '')).toEqual({ a: x, b: [`x ${x}`] });
        }),
      );
    }
    fc.assert(
      fc.property(fc.jsonValue(), (x) => {
        expect(JSON.parse(render(post(value.a), { x }).body ?? '')).toEqual(JSON.parse(JSON.stringify(x)));
      }),
    );
  });

  test('of a form', () => {
    const template = post('a={{input.x}}&b={{input.y}}', { 'content-type': 'application/x-www-form-urlencoded' });
    fc.assert(
      fc.property(text, text, (x, y) => {
        expect([...new URLSearchParams(render(template, { x, y }).body ?? '')]).toEqual([
          ['a', x.toWellFormed()],
          ['b', y.toWellFormed()],
        ]);
      }),
    );
  });
});
