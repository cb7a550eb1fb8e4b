// The text of a paragraph, heading or cell: emphasis, code, links and images.
import { Fragment, memo, type ReactNode } from 'react';
import { visible } from '../text.tsx';
import { External, hostOf } from './external.tsx';
import { parseInline, type References, type Token } from './parse.ts';
import { RemoteImage } from './remote-image.tsx';

const none: References = {};

export function Inline({ content, references }: { content: string; references: References }) {
  return <Read content={content} references={content.includes('[') ? references : none} />;
}

const Read = memo(function Read({ content, references }: { content: string; references: References }) {
  const tokens = parseInline(content, references);
  return tokens ? nodesOf(tokens) : visible(content);
});

const marks = { em_open: 'em', strong_open: 'strong', s_open: 's' } as const;

interface Open {
  token: Token | undefined;
  nodes: ReactNode[];
}

function nodesOf(tokens: readonly Token[]): ReactNode {
  const root: Open = { token: undefined, nodes: [] };
  const open = [root];
  for (const token of tokens) {
    const { nodes } = open.at(-1)!;
    const key = nodes.length;
    if (token.nesting === 1) open.push({ token, nodes: [] });
    else if (token.nesting === -1) {
      const closed = open.pop()!;
      const outer = open.at(-1)!.nodes;
      outer.push(<Fragment key={outer.length}>{wrapped(closed.token!, closed.nodes)}</Fragment>);
    } else if (token.type === 'code_inline') nodes.push(<code key={key}>{visible(token.content)}</code>);
    else if (token.type === 'hardbreak' || token.type === 'softbreak') nodes.push(<br key={key} />);
    else if (token.type === 'image') nodes.push(<Fragment key={key}>{imageOf(token, isInLink(open))}</Fragment>);
    else nodes.push(<Fragment key={key}>{visible(token.content)}</Fragment>);
  }
  return root.nodes;
}

const isInLink = (open: readonly Open[]): boolean => open.some(({ token }) => token?.type === 'link_open');

/** In a link, it is its text. */
function imageOf(token: Token, inLink: boolean): ReactNode {
  const address = String(token.attrGet('src') ?? '');
  if (inLink) return visible(token.content === '' ? `Image from ${hostOf(address)}` : token.content);
  return <RemoteImage address={address} alt={token.content} />;
}

function wrapped(token: Token, nodes: ReactNode[]): ReactNode {
  if (token.type === 'link_open') return <External address={String(token.attrGet('href') ?? '')}>{nodes}</External>;
  const Mark = marks[token.type as keyof typeof marks];
  return Mark ? <Mark>{nodes}</Mark> : nodes;
}
