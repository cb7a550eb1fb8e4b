// A message in a conversation: of the agent, as Markdown or as its source, and of a user or the service.
import type { Source } from '@signalbox/client';
import { lazy, memo, type ReactNode, Suspense, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { CopyButton, Json } from '../../ui/copy.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Sources } from './sources.tsx';

// Loaded next to the page, which shows the text meanwhile.
const Markdown = lazy(() => import('../../ui/markdown/markdown.tsx').then((file) => ({ default: file.Markdown })));

/** What the model said. */
export const AgentText = memo(function AgentText({
  text,
  sources,
  isGrowing,
  isStructured,
}: {
  text: string;
  /** What the text cites. */
  sources?: readonly Source[] | undefined;
  isGrowing: boolean;
  /** The agent's output is JSON. */
  isStructured: boolean;
}) {
  const value = isStructured && !isGrowing ? readStructured(text) : undefined;
  if (value)
    return (
      <>
        <Json value={value} />
        {sources && <Sources sources={sources} />}
      </>
    );
  return (
    <div className="text">
      {text !== '' && <MessageText text={text} isGrowing={isGrowing} />}
      {sources && <Sources sources={sources} />}
    </div>
  );
});

/** A text as Markdown, or as it is written. */
export function MessageText({
  text,
  isGrowing = false,
  actions,
}: {
  text: string;
  isGrowing?: boolean;
  actions?: ReactNode;
}) {
  const [isSource, setSource] = useState(false);
  return (
    <>
      <div className="message-text" aria-busy={isGrowing || undefined}>
        {isSource ? (
          <PlainText text={text} />
        ) : (
          <Suspense fallback={<PlainText text={text} />}>
            <Markdown text={text} isGrowing={isGrowing} />
          </Suspense>
        )}
      </div>
      {!isGrowing && (
        <div className="message-actions">
          {text !== '' && (
            <>
              <CopyButton text={text} />
              <Button small look="bare" aria-pressed={isSource} onClick={() => setSource(!isSource)}>
                Show source
              </Button>
            </>
          )}
          {actions}
        </div>
      )}
    </>
  );
}

/** The text as an object or array; any other output reads the same as text. */
function readStructured(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
