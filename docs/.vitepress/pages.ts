// The pages of the site. docs/README.md lists them, so that the repository and the site have the same table of contents: its headings
// are the groups of the sidebar, its links the pages, and what follows a link describes the page in llms.txt.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

export interface Page {
  /** The file, from the root of the repository. */
  file: string;
  title: string;
  /** What the table of contents says about it. */
  about: string;
}
export interface Group {
  title: string;
  pages: Page[];
}

export const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** The groups that a page lists: headings, with bullets that start with a link. */
function groupsOf(contents: string): Group[] {
  return read(contents)
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      title: section.slice(0, section.indexOf('\n')),
      pages: [...section.matchAll(/^- \[([^\]]+)\]\(([^)#]+\.md)\)(?:: ([\s\S]*?))?$(?!\n {2})/gm)].map(
        ([, title = '', target = '', about = '']) => ({
          file: join(dirname(contents), target),
          title,
          about: about.replaceAll(/\s+/g, ' '),
        }),
      ),
    }))
    .filter(({ pages }) => pages.length > 0);
}

export const home = 'docs/README.md';
export const groups = groupsOf(home);
/** docs/decisions/README.md has a table of contents of its own. */
const decisionsPage = 'docs/decisions/README.md';
export const decisions = [...read(decisionsPage).matchAll(/\[([^\]]+)\]\((\d{4}-[\w-]+\.md)\)/g)].map(
  ([, title = '', name = '']): Page => ({ file: join(dirname(decisionsPage), name), title, about: '' }),
);
export const pages: string[] = [
  home,
  ...[...groups.flatMap((group) => group.pages), ...decisions].map((one) => one.file),
];

/** Pages outside of docs/, with their place in the site. */
const elsewhere: Readonly<Record<string, string>> = {
  'SECURITY.md': 'operations/security.md',
  'CHANGELOG.md': 'changelog.md',
  'CONTRIBUTING.md': 'contributing.md',
};

/** Where the site has a page: `docs/guides/tools.md` is `guides/tools.md`. */
export function placeOf(file: string): string {
  const [, name] = /^packages\/([\w-]+)\/(?:README|SKILL)\.md$/.exec(file) ?? [];
  if (name !== undefined) return `reference/${name}${file.endsWith('SKILL.md') ? '-skill' : ''}.md`;
  return elsewhere[file] ?? file.replace(/^docs\//, '').replace(/README\.md$/, 'index.md');
}

/** The address of a page in the site. */
export const addressOf = (file: string): string => `/${placeOf(file).replace(/(^|\/)index\.md$|\.md$/, '$1')}`;

/** The anchor of a heading, as GitHub derives it. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

/** What a link in `file` leads to: a page of the site, another file of the repository, or something outside of both. */
export function resolveLink(file: string, href: string): { page: string } | { source: string } | 'outside' {
  if (/^([a-z]+:|#|\/)/.test(href)) return 'outside';
  const [path = '', anchor] = href.split('#');
  const target = join(dirname(file), path);
  if (pages.includes(target)) return { page: addressOf(target) + (anchor === undefined ? '' : `#${anchor}`) };
  if (!existsSync(join(root, target))) throw new Error(`${file} links to ${href}, which does not exist.`);
  return { source: target };
}
