import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { highlight } from './highlight.ts';
import { Markdown } from './markdown.tsx';
import { MarkdownReader } from './parse.ts';

const html = (text: string) => renderToStaticMarkup(createElement(Markdown, { text }));
const repeat = (text: string, count: number) => text.repeat(count);

test('headings, emphasis, lists, tasks, tables, quotes and code become elements', () => {
  const shown = html(
    [
      '# Title',
      'One **two** *three* ~~four~~ `five`\nnext line',
      '1. a\n2. b',
      '- [x] done\n- [ ] open',
      '| a | b |\n|---|--:|\n| 1 | 2 |',
      '> quoted',
      '```ts\nconst x = 1;\n```',
      '---',
    ].join('\n\n'),
  );
  for (const part of [
    '<h3 dir="auto" data-level="1">Title</h3>',
    '<strong>two</strong> <em>three</em> <s>four</s> <code>five</code><br/>next line',
    '<ol dir="auto" start="1"><li>a</li><li>b</li></ol>',
    '<input type="checkbox" disabled="" aria-label="Done" checked=""/>done',
    '<input type="checkbox" disabled="" aria-label="To do"/>open',
    '<th dir="auto">a</th><th dir="auto" data-align="right">b</th>',
    '<blockquote><p dir="auto">quoted</p></blockquote>',
    '<span>ts</span>',
    '<code>const x = 1;</code>',
    '<hr/>',
  ])
    expect(shown).toContain(part);
});

test('only http, https and mailto addresses become links, and none of them sends a referrer', () => {
  const links = html('[a](https://a.example/x?y#z) <https://b.example> https://c.example [d](mailto:d@example.com)');
  expect(links.match(/<a /g)).toHaveLength(4);
  expect(links.match(/target="_blank" rel="noopener noreferrer nofollow"/g)).toHaveLength(4);
  expect(links).toContain('href="https://a.example/x?y#z" title="https://a.example/x?y#z"');
  for (const address of [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java&#115;cript:alert(1)',
    '&#x6A;avascript:alert(1)',
    ' javascript:alert(1)',
    'data:text/html;base64,PHNjcmlwdD4=',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:abc',
    '/console/org_x/keys',
    '//evil.example',
    '#top',
    '\\u0001javascript:alert(1)',
  ]) {
    const shown = html(`[a](${address}) ![a](${address}) <${address}>\n\n[b]\n\n[b]: ${address}`);
    expect(shown, address).not.toMatch(/<a |<img|href=/);
  }
});

test('HTML is shown as text, and images elsewhere are not requested', () => {
  const shown = html(
    '<script>alert(1)</script>\n\n<img onerror=alert(1)> <b>no</b>\n\n![pixel](https://t.example/p.gif)',
  );
  expect(shown).not.toMatch(/<script|<img|<b>|src=/);
  expect(shown).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
  expect(shown).toMatch(/<button [^>]*title="https:\/\/t.example\/p.gif"[^>]*>Show image from t.example<\/button>/);
  // The frame that shows one after a click loads only https.
  expect(html('![pixel](http://t.example/p.gif)')).toMatch(/<a href="http:[^>]+>Open image from t.example<\/a>/);
});

test('an image in a link is the text of the link', () => {
  expect(
    html('[![Lamp](https://t.example/p.gif)](https://shop.example) [![](https://t.example/q)](https://b.example)'),
  ).toBe(
    '<div class="markdown"><p dir="auto">' +
      [
        ['https://shop.example', 'Lamp'],
        ['https://b.example', 'Image from t.example'],
      ]
        .map(
          ([to, text]) =>
            `<a href="${to}" title="${to}" target="_blank" rel="noopener noreferrer nofollow">${text}</a>`,
        )
        .join(' ') +
      '</p></div>',
  );
});

test('invisible and bidirectional control characters are shown as code points, in text and in code', () => {
  const shown = html('pay \u202eevil\u202c\n\n`a\u200bb`\n\n```js\nx\u2066y\n```');
  for (const code of ['U+202E', 'U+202C', 'U+200B', 'U+2066']) expect(shown).toContain(code);
  expect(shown).not.toMatch(/[\u202e\u202c\u200b\u2066]/);
});

test('each block has the direction of its text', () => {
  expect(html('مرحبا\n\nhello')).toBe('<div class="markdown"><p dir="auto">مرحبا</p><p dir="auto">hello</p></div>');
});

/** Texts that make a careless parser or page quadratic, or overflow its stack. */
const hostile: Record<string, string> = {
  emphasis: repeat('*a **a ', 30_000),
  closedEmphasis: `${repeat('**', 50_000)}a${repeat('**', 50_000)}`,
  underscores: repeat('_a__', 50_000),
  strikes: repeat('~~a~~~~', 30_000),
  brackets: repeat('[', 200_000),
  images: repeat('![', 30_000) + repeat('](https://a.example)', 30_000),
  links: repeat('[a](https://a.example) ', 10_000),
  listOfLinks: repeat('- [a](https://a.example)\n', 10_000),
  quotes: `${repeat('>', 100_000)}a`,
  lists: Array.from({ length: 1000 }, (_, depth) => `${repeat('  ', depth)}- a`).join('\n'),
  backticks: Array.from({ length: 1500 }, (_, count) => `${repeat('`', count + 1)}a`).join(' '),
  references: repeat('[a]: https://a.example\n', 30_000) + repeat('[a]', 30_000),
  addresses: repeat('http://', 60_000),
  mailto: repeat('mailto:', 60_000),
  entities: repeat('&', 300_000),
  wide: `${repeat('|a', 5000)}\n${repeat('|-', 5000)}\n${repeat('|b\n', 20_000)}`,
  high: `|a|\n|-|\n${repeat('|b|\n', 50_000)}`,
  word: repeat('a', 1_000_000),
  fence: `\`\`\`js\n${repeat('"', 500_000)}`,
  rules: repeat('---\n', 100_000),
};

test.each(Object.entries(hostile))('a hostile text makes a bounded page: %s', (_, text) => {
  const shown = html(text);
  // Most would otherwise be hundreds of thousands of elements, or more.
  expect(shown.match(/</g)!.length).toBeLessThan(20_000);
});

test('a text that grows is shown like the whole text, and closed blocks stay the same objects', () => {
  const text = [
    '# T',
    'para [r] and *e*',
    '- a\n\n  b\n- c',
    '```js\nx\n\n\ny\n```',
    '| a |\n|---|\n| b |',
    'lazy\n===',
    '> q\nlazy',
    '[r]: https://r.example "t"',
    'end [r]\r\nnew',
  ].join('\n\n');
  const reader = new MarkdownReader();
  const first: object[] = [];
  for (let end = 1; end <= text.length; end += 1) {
    const blocks = reader.read(text.slice(0, end));
    const fresh = new MarkdownReader();
    expect(blocks.map(({ start, source }) => [start, source])).toEqual(
      fresh.read(text.slice(0, end)).map(({ start, source }) => [start, source]),
    );
    expect(reader.references).toEqual(fresh.references);
    if (blocks.length === 4) first.push(blocks[0]!);
  }
  expect(first.length).toBeGreaterThan(1);
  expect(new Set(first).size).toBe(1);
});

test('a message of 200 KB that arrives in 4,000 pieces is parsed about once, not once per piece', () => {
  const text = repeat('Some **bold** words, `code` and [a link](https://a.example) of a paragraph.\n\n', 2700);
  const reader = new MarkdownReader();
  const size = Math.ceil(text.length / 4000);
  let parsed = 0;
  let before: readonly object[] = [];
  for (let end = size; end < text.length + size; end += size) {
    const blocks = reader.read(text.slice(0, end));
    const known = new Set(before.slice(-3));
    for (const block of blocks.slice(-3)) if (!known.has(block)) parsed += block.source.length;
    before = blocks;
  }
  expect(before).toHaveLength(2700);
  expect(parsed).toBeLessThan(text.length * 3);
});

test('code of a known language is colored, and of another one is not', () => {
  const pieces = highlight('ts', 'const a = "b";')!;
  expect(pieces.map(({ text }) => text).join('')).toBe('const a = "b";');
  expect(pieces).toContainEqual({ text: 'const', kind: 'hljs-keyword' });
  expect(highlight('brainfuck', '+')).toBeUndefined();
});
