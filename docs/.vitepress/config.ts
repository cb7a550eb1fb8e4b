// The documentation as a site: `npm run docs`. It asks no other host for anything.
import { copyFileSync, globSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { renderMermaidSVG } from 'beautiful-mermaid';
import { defineConfig } from 'vitepress';
import { copyReference } from './api-reference.ts';
import { llmsFullTxt, llmsTxt, markdownOf } from './llms.ts';
import { addressOf, anchorOf, decisions, groups, pages, placeOf, read, resolveLink, root } from './pages.ts';

const { version, repository } = JSON.parse(read('package.json')) as { version: string; repository?: { url: string } };
/** Where the sources can be read. Until the repository has a public address, links to them are plain text. */
const sources = repository?.url.replace(/^git\+/, '').replace(/\.git$/, '');

const icon = `data:image/svg+xml,${encodeURIComponent(read('packages/console/src/icon.svg'))}`;
const isInSite = new Set(pages);
const sidebarItem = ({ title, file }: { title: string; file: string }) => ({ text: title, link: addressOf(file) });

/** Drawn now, so that the page loads no library for it. Its style is in the theme: its own loads a font from elsewhere. */
function diagram(source: string): string {
  const svg = renderMermaidSVG(source, { padding: 8 })
    .replace(/<style>[\s\S]*?<\/style>/, '')
    .replace(/ style="[^"]*"/, '');
  return `<figure class="diagram" tabindex="0" v-pre>${svg}</figure>\n`;
}

export default defineConfig({
  title: 'Signalbox',
  description: 'A self-hosted platform for running AI agents',
  lang: 'en',
  // Some pages are outside of docs/, next to what they describe.
  srcDir: '..',
  srcExclude: globSync('**/*.md', {
    cwd: root,
    exclude: ['node_modules/**', '**/node_modules/**', '**/dist/**'],
  }).filter((file) => !isInSite.has(file.replaceAll('\\', '/'))),
  rewrites: (file) => placeOf(file),
  cleanUrls: true,
  ignoreDeadLinks: 'localhostLinks',
  cacheDir: '../node_modules/.cache/vitepress',
  // The pages of other programs in the repository are not entries of this site.
  vite: { publicDir: false, optimizeDeps: { entries: [] } },
  // Files named config.ts elsewhere in the repository are not part of this.
  additionalConfig: {},
  head: [['link', { rel: 'icon', href: icon, type: 'image/svg+xml' }]],
  markdown: {
    attrs: false,
    emoji: false,
    languageAlias: { promql: 'bash' },
    anchor: { slugify: anchorOf },
    config(md) {
      // A page is Markdown, not a template of Vue.
      const { text, code_inline: code } = md.renderer.rules;
      const escapeBraces = (html = '') => html.replaceAll('{{', '&#123;&#123;');
      md.renderer.rules.text = (...args) => escapeBraces(text?.(...args));
      md.renderer.rules.code_inline = (...args) => escapeBraces(code?.(...args));
      // Commands are indented.
      md.renderer.rules.code_block = (tokens, index, ...rest) => {
        tokens[index]!.info = 'sh';
        return md.renderer.rules.fence!(tokens, index, ...rest);
      };
      const { fence } = md.renderer.rules;
      md.renderer.rules.fence = (tokens, index, ...rest) => {
        const { info, content } = tokens[index]!;
        return info === 'mermaid' ? diagram(content) : fence!(tokens, index, ...rest);
      };
      // A header cell without text is none, to a screen reader.
      md.core.ruler.push('headers', ({ tokens }) => {
        for (const [index, { type }] of tokens.entries()) {
          if (type !== 'th_open' || tokens[index + 1]!.content !== '') continue;
          tokens[index]!.tag = tokens[index + 2]!.tag = 'td';
        }
      });
      // Links are written for a reader of the repository.
      md.core.ruler.push('links', ({ tokens, env }) => {
        const file = String(env.realPath ?? env.path)
          .replaceAll('\\', '/')
          .replace(`${root.replaceAll('\\', '/').replace(/\/$/, '')}/`, '');
        for (const { children } of tokens) {
          for (const [index, token] of (children ?? []).entries()) {
            if (token.type !== 'link_open') continue;
            const target = resolveLink(file, String(token.attrGet('href') ?? ''));
            if (target === 'outside') continue;
            if ('page' in target) token.attrSet('href', target.page);
            else if (sources) token.attrSet('href', `${sources}/blob/v${version}/${target.source}`);
            else {
              const end = children!.find(({ type }, at) => at > index && type === 'link_close')!;
              token.attrs = null;
              token.tag = end.tag = 'span';
            }
          }
        }
      });
    },
  },
  themeConfig: {
    logo: icon,
    nav: [
      { text: 'Tutorial', link: '/tutorial' },
      { text: 'Guides', link: '/guides/models', activeMatch: '^/guides/' },
      { text: 'Operations', link: '/operations/postgresql', activeMatch: '^/operations/' },
      { text: 'Reference', link: '/reference/configuration', activeMatch: '^/reference/' },
      { text: 'API', link: '/reference/api.html', target: '_self' },
      { text: version, link: '/changelog' },
    ],
    sidebar: [
      ...groups.map(({ title, pages }) => ({ text: title, items: pages.map(sidebarItem) })),
      { text: 'Decisions', collapsed: true, items: decisions.map(sidebarItem) },
    ],
    outline: { level: [2, 3] },
    search: { provider: 'local' },
    ...(sources && { editLink: { pattern: `${sources}/edit/main/:path`, text: 'Edit this page' } }),
  },
  buildEnd({ outDir }) {
    writeFileSync(join(outDir, 'llms.txt'), llmsTxt());
    writeFileSync(join(outDir, 'llms-full.txt'), llmsFullTxt());
    copyFileSync(join(root, 'openapi.json'), join(outDir, 'openapi.json'));
    copyReference(outDir);
    for (const file of pages) {
      const place = join(outDir, placeOf(file));
      mkdirSync(dirname(place), { recursive: true });
      writeFileSync(place, markdownOf(file));
    }
  },
});
