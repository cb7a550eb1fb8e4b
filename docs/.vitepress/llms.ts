// llms.txt, the table of contents for language models, and llms-full.txt, all pages in one file (https://llmstxt.org).
import { addressOf, groups, home, placeOf, read, resolveLink } from './pages.ts';

const [, summary = ''] = /^# .*\n\n([\s\S]*?)\n\n/.exec(read(home)) ?? [];

export function llmsTxt(): string {
  const sections = groups.map(
    ({ title, pages }) =>
      `## ${title}\n\n${pages.map((page) => `- [${page.title}](/${placeOf(page.file)})${page.about && `: ${page.about}`}`).join('\n')}\n`,
  );
  return `# Signalbox\n\n> ${summary.replaceAll('\n', ' ')}\n\nEvery page is also served as Markdown, at its address with \`.md\`; /llms-full.txt has all of them.\n\n${sections.join('\n')}`;
}

/** A page as Markdown, with links that lead to pages of the site. */
export function markdownOf(file: string): string {
  return read(file).replaceAll(/\]\(([^)\s]+)\)/g, (link, href: string) => {
    const target = resolveLink(file, href);
    return target !== 'outside' && 'page' in target ? `](${target.page})` : link;
  });
}

export function llmsFullTxt(): string {
  const all = groups.flatMap(({ pages }) => pages);
  return all.map(({ file }) => `<!-- ${addressOf(file)} -->\n\n${markdownOf(file)}`).join('\n\n');
}
