// What a text cites. Titles and addresses are strangers' texts: a title can name another site, so each link shows its host.
import type { Source } from '@signalbox/client';
import { External, hostOf } from '../../ui/markdown/external.tsx';
import { PlainText } from '../../ui/text.tsx';

export function Sources({ sources }: { sources: readonly Source[] }) {
  return (
    <section className="sources" aria-label="Sources">
      <h4 className="quiet small">{sources.length === 1 ? 'Source' : 'Sources'}</h4>
      <ol>
        {sources.map((source, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the sources of a text never move
          <li key={index} {...(source.citedText !== undefined && { title: source.citedText })}>
            <SourceName source={source} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function SourceName({ source: { url, title } }: { source: Source }) {
  if (url === undefined || !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    return <PlainText text={title ?? url ?? 'A document'} />;
  const host = hostOf(url);
  return (
    <>
      <External address={url}>
        <PlainText text={title ?? url} />
      </External>
      {title !== undefined && title !== host && (
        <span className="quiet small">
          {' '}
          <PlainText text={host} />
        </span>
      )}
    </>
  );
}
