import { type ReactNode, useState } from 'react';
import { escapeInvisible } from '../lib/text-format.ts';
import { Button } from './button.tsx';
import { writeClipboard } from './clipboard.ts';
import { useToast } from './toast.tsx';

export function CopyButton({ text, label = 'Copy', look }: { text: string; label?: string; look?: 'primary' }) {
  const [copied, setCopied] = useState(false);
  const toast = useToast();
  async function copy() {
    if (!(await writeClipboard(text)))
      return toast('Your browser blocked copying. Select the text and copy it yourself.');
    setCopied(true);
    toast('Copied');
    setTimeout(() => setCopied(false), 2000);
  }
  return (
    <Button small onClick={copy} {...(look && { look })}>
      {copied ? 'Copied' : label}
    </Button>
  );
}

/** Code or output, with a copy button. */
export function Code({ text, wide, label = 'Copy' }: { text: string; wide?: boolean; label?: string }) {
  return (
    <div className={wide ? 'code wide' : 'code'}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard */}
      <pre tabIndex={0}>{text}</pre>
      <div className="copy">
        <CopyButton text={text} label={label} />
      </div>
    </div>
  );
}

/** A value as JSON with syntax colors. Invisible characters are escaped. */
export function Json({ value }: { value: unknown }) {
  const text = escapeInvisible(JSON.stringify(value, null, 2) ?? 'null');
  return (
    <div className="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard */}
      <pre tabIndex={0}>{colored(text)}</pre>
      <div className="copy">
        <CopyButton text={text} />
      </div>
    </div>
  );
}

// Longer texts are shown without colors, because each token is a DOM node.
const MAX_COLORED = 20_000;
const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function colored(text: string): ReactNode {
  if (text.length > MAX_COLORED) return text;
  const parts: ReactNode[] = [];
  let end = 0;
  for (const match of text.matchAll(token)) {
    parts.push(text.slice(end, match.index));
    const kind = match[2] ? 'json-key' : match[1] ? 'json-string' : 'json-literal';
    parts.push(
      <span className={kind} key={match.index}>
        {match[1] ?? match[0]}
      </span>,
      match[2] ?? '',
    );
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}
