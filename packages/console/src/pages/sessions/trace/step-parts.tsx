// What the tabs of a step are made of. All of it is untrusted text.
import type { MessagePart, SentRequest } from '@signalbox/client';
import type { ReactNode } from 'react';
import { toolTitle } from '../../../lib/text-format.ts';
import { Json } from '../../../ui/copy.tsx';
import { LongText, PlainText } from '../../../ui/text.tsx';
import { Sources } from '../sources.tsx';

export function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="step-part">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

export function Content({ parts }: { parts: readonly MessagePart[] }) {
  return (
    <div className="stack">
      {parts.map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one message never move
        <div key={index}>
          <PartView part={part} />
        </div>
      ))}
    </div>
  );
}

function PartView({ part }: { part: MessagePart }) {
  switch (part.type) {
    case 'text':
      return (
        <>
          <LongText text={part.text} />
          {part.sources && <Sources sources={part.sources} />}
        </>
      );
    case 'tool_call':
      return (
        <>
          <span className="quiet">
            {part.by === 'provider' ? 'the provider ran' : 'calls'} <PlainText text={toolTitle(part.tool)} />
          </span>
          <Json value={part.input} />
        </>
      );
    case 'tool_result':
      return <Value value={part.error ?? part.output} />;
    case 'file':
      return <code>{part.filename ?? part.fileId}</code>;
    default:
      return <Json value={part} />;
  }
}

/** A text as text, and anything else as JSON. */
export function Value({ value }: { value: unknown }) {
  return typeof value === 'string' ? <LongText text={value} /> : <Json value={value} />;
}

/** As JSON if it is JSON. */
export function Body({ text }: { text: string }) {
  const value = jsonIn(text);
  return value === undefined ? <LongText text={text} /> : <Value value={value} />;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function Headers({ headers }: { headers: SentRequest['headers'] }) {
  if (headers.length === 0) return <p className="quiet">None</p>;
  return (
    <dl className="step-headers">
      {headers.map(({ name, value }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a header can occur twice, and never moves
        <div key={index}>
          <dt>
            <PlainText text={name} />
          </dt>
          <dd>
            <PlainText text={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
