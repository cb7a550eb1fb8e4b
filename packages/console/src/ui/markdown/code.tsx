// A block of code with its language and a copy button.
import { type ReactNode, useEffect, useState } from 'react';
import { CopyButton } from '../copy.tsx';
import { visible } from '../text.tsx';
import type { Colored } from './highlight.ts';

/** Longer code is shown without colors, because each piece is a DOM node. */
const MAX_COLORED = 20_000;

export function CodeBlock({ code, language, isGrowing }: { code: string; language: string; isGrowing: boolean }) {
  const colored = useColors(language, code, !isGrowing && code.length <= MAX_COLORED);
  return (
    <figure className="md-code">
      <figcaption>
        <span>{language || 'text'}</span>
        <CopyButton text={code} label="Copy" />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard */}
      <pre tabIndex={0} dir="ltr">
        <code>{colored ? pieces(colored) : visible(code)}</code>
      </pre>
    </figure>
  );
}

function pieces(colored: readonly Colored[]): ReactNode {
  return colored.map(({ text, kind }, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of one text never move
    <span className={kind} key={index}>
      {visible(text)}
    </span>
  ));
}

function useColors(language: string, code: string, isWanted: boolean): readonly Colored[] | undefined {
  const [found, setFound] = useState<{ code: string; pieces: readonly Colored[] | undefined }>();
  useEffect(() => {
    if (!isWanted || language === '') return;
    let isOver = false;
    // Without colors, if the file can't be loaded.
    import('./highlight.ts').then(
      ({ highlight }) => !isOver && setFound({ code, pieces: highlight(language, code) }),
      () => {},
    );
    return () => {
      isOver = true;
    };
  }, [isWanted, language, code]);
  return found?.code === code ? found.pieces : undefined;
}
