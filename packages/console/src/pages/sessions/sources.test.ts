import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { Sources } from './sources.tsx';

const shown = (...sources: Parameters<typeof Sources>[0]['sources']) =>
  renderToStaticMarkup(createElement(Sources, { sources }));

test('a source is a link that opens apart, next to the host that its title may not name', () => {
  const html = shown({ url: 'https://example.com/a?b=1', title: 'Your bank' });
  expect(html).toContain('href="https://example.com/a?b=1"');
  expect(html).toContain('rel="noopener noreferrer nofollow"');
  expect(html).toContain('Your bank');
  expect(html.replaceAll(/<[^>]*>/g, '')).toContain('example.com');
});

test.each(['javascript:alert(1)', 'data:text/html,x', '/console', 'vbscript:x', 'ftp://example.com/'])(
  '%s is never a link',
  (url) => {
    const html = shown({ url, title: 'A' }, { title: 'a.pdf' });
    expect(html).not.toContain('href');
    expect(html).toContain('a.pdf');
  },
);
