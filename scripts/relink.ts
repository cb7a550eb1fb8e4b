// Links of Markdown that is copied into a package. In the repository they lead to files that the package has elsewhere, or not at all.
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path/posix';

/**
 * Corrects the links of the Markdown in `folder`; a link out of the package becomes text, and a picture is removed. `origins` has the
 * file or folder of the repository for each path that was copied.
 */
export function relink(folder: string, root: string, origins: Readonly<Record<string, string>>): void {
  for (const file of globSync('**/*.md', { cwd: folder }).map((path) => path.replaceAll('\\', '/'))) {
    const origin = placeIn(origins, file);
    if (origin === undefined) continue;
    const text = readFileSync(join(folder, file), 'utf8');
    /** Undefined if the package lacks it; the link itself if it does not lead to a file of the repository. */
    const resolve = (href: string): string | undefined => {
      const [path = '', anchor] = href.split('#');
      const source = join(dirname(origin), path);
      if (/^([a-z]+:|#|\/)/.test(href) || !existsSync(join(root, source))) return href;
      const place = placeIn(inverse(origins), source);
      if (place === undefined || !existsSync(join(folder, place))) return undefined;
      const link = relative(dirname(file), place);
      return anchor === undefined ? link : `${link}#${anchor}`;
    };
    const relinked = text
      .replaceAll(/(?<!!)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (_, words: string, href: string) => {
        const link = resolve(href);
        return link === undefined ? words : `[${words}](${link})`;
      })
      .replaceAll(/<picture>[\s\S]*?src="([^"]+)"[\s\S]*?<\/picture>\n*/g, (picture, src: string) =>
        resolve(src) === src ? picture : '',
      );
    if (relinked !== text) writeFileSync(join(folder, file), relinked);
  }
}

const inverse = (origins: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(origins).map(([to, from]) => [from, to]));

/** Where a path is on the other side, itself or in a folder. */
function placeIn(places: Readonly<Record<string, string>>, path: string): string | undefined {
  const [from, to] = Object.entries(places).find(([one]) => path === one || path.startsWith(`${one}/`)) ?? [];
  return from === undefined ? undefined : to + path.slice(from.length);
}
