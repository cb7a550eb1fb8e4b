// Markdown of agents, tools and users as React elements. The text is hostile: nothing of it becomes HTML, an address of another
// scheme or a request, and no text takes long.
import { memo, type ReactNode, useState } from 'react';
import { Button } from '../button.tsx';
import { PlainText } from '../text.tsx';
import { CodeBlock } from './code.tsx';
import { Inline } from './inline.tsx';
import { type Block, MarkdownReader, type References, type Token } from './parse.ts';
import './markdown.css';

/** How much of a text is shown; the rest is shown on demand. */
const SHOWN_CHARACTERS = 100_000;
const SHOWN_BLOCKS = 2000;
/** A block with more, such as a table of ten thousand rows, is shown as it is written. */
const MAX_BLOCK_TOKENS = 6000;

export const Markdown = memo(function Markdown({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) {
  const [reader] = useState(() => new MarkdownReader());
  // What was shown while it grew stays.
  const [pages, setPages] = useState(isGrowing ? Number.POSITIVE_INFINITY : 1);
  const blocks = reader.read(text.slice(0, pages * SHOWN_CHARACTERS));
  const shown = blocks.slice(0, pages * SHOWN_BLOCKS);
  const last = shown.at(-1);
  const left = text.length - (last ? last.start + last.source.length : 0);
  return (
    <div className="markdown">
      {shown.map((block) => (
        <BlockView
          key={block.start}
          block={block}
          references={reader.references}
          isGrowing={isGrowing && block === last}
        />
      ))}
      {(text.length > pages * SHOWN_CHARACTERS || blocks.length > shown.length) && (
        <div>
          <Button small onClick={() => setPages(pages + 1)}>
            Show more ({left.toLocaleString('en')} characters left)
          </Button>
        </div>
      )}
    </div>
  );
});

const BlockView = memo(function BlockView({
  block: { source, tokens },
  references,
  isGrowing,
}: {
  block: Block;
  references: References;
  isGrowing: boolean;
}) {
  if (tokens.length > MAX_BLOCK_TOKENS) return <PlainText text={source} />;
  return nodesOf(tokens, { references, isGrowing });
});

interface Context {
  references: References;
  isGrowing: boolean;
}

interface Open {
  token: Token | undefined;
  nodes: ReactNode[];
}

/** Without recursion, so that no nesting is too deep. */
function nodesOf(tokens: readonly Token[], context: Context): ReactNode {
  const root: Open = { token: undefined, nodes: [] };
  const open = [root];
  for (const token of tokens) {
    if (token.nesting === 1) {
      open.push({ token, nodes: [] });
      continue;
    }
    const closed = token.nesting === -1 ? open.pop() : undefined;
    const { nodes } = open.at(-1)!;
    const key = nodes.length;
    if (closed) nodes.push(element(closed.token!, closed.nodes, key));
    else if (token.type === 'inline') nodes.push(...inline(token.content, open, context, key));
    else if (token.type === 'hr') nodes.push(<hr key={key} />);
    else {
      const [language = ''] = token.info.trim().split(/\s+/, 1);
      const code = token.content.replace(/\n$/, '');
      nodes.push(
        <CodeBlock
          key={key}
          code={code}
          language={language.toLowerCase().slice(0, 40)}
          isGrowing={context.isGrowing}
        />,
      );
    }
  }
  return root.nodes;
}

const task = /^\[([ xX])\][ \t]+/;

function inline(content: string, open: readonly Open[], { references }: Context, key: number): ReactNode[] {
  const isTask = open.at(-2)?.token?.type === 'list_item_open' && open.at(-2)!.nodes.length === 0;
  const [mark, state] = (isTask && task.exec(content)) || [];
  if (!mark) return [<Inline key={key} content={content} references={references} />];
  return [
    <input key={key} type="checkbox" checked={state !== ' '} disabled aria-label={state === ' ' ? 'To do' : 'Done'} />,
    <Inline key={key + 1} content={content.slice(mark.length)} references={references} />,
  ];
}

function element(token: Token, nodes: ReactNode[], key: number): ReactNode {
  switch (token.type) {
    case 'paragraph_open':
      // In a list without blank lines between its items.
      return token.hidden ? nodes : paragraph(nodes, key);
    case 'heading_open': {
      // The page and the conversation have the levels above.
      const Heading = `h${Math.min(6, Number(token.tag.slice(1)) + 2)}` as 'h3';
      return (
        <Heading key={key} dir="auto" data-level={token.tag.slice(1)}>
          {nodes}
        </Heading>
      );
    }
    case 'blockquote_open':
      return <blockquote key={key}>{nodes}</blockquote>;
    case 'bullet_list_open':
      return (
        <ul key={key} dir="auto">
          {nodes}
        </ul>
      );
    case 'ordered_list_open':
      return (
        <ol key={key} dir="auto" start={Number(token.attrGet('start') ?? 1)}>
          {nodes}
        </ol>
      );
    case 'list_item_open':
      return <li key={key}>{nodes}</li>;
    case 'table_open':
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard
        <section className="md-table" key={key} tabIndex={0} aria-label="Table">
          <table>{nodes}</table>
        </section>
      );
    case 'thead_open':
      return <thead key={key}>{nodes}</thead>;
    case 'tbody_open':
      return <tbody key={key}>{nodes}</tbody>;
    case 'tr_open':
      return <tr key={key}>{nodes}</tr>;
    case 'th_open':
    case 'td_open': {
      const Cell = token.tag as 'th' | 'td';
      const [, align] = /text-align:(\w+)/.exec(String(token.attrGet('style') ?? '')) ?? [];
      return (
        <Cell key={key} dir="auto" data-align={align}>
          {nodes}
        </Cell>
      );
    }
    default:
      return nodes;
  }
}

function paragraph(nodes: ReactNode[], key: number): ReactNode {
  return (
    <p key={key} dir="auto">
      {nodes}
    </p>
  );
}
