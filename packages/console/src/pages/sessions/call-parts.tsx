// The parts of a tool call that a session and a shared conversation have in common.
import { ChevronRight, Wrench } from 'lucide-react';
import type { ReactNode } from 'react';
import { toolTitle } from '../../lib/text-format.ts';
import { LongText, PlainText } from '../../ui/text.tsx';
import { Fold, gistOf, ValueView } from './call-values.tsx';
import type { CallEntry } from './conversation.ts';

/** A call in one line: the tool, the start of its input or its exact name, and its status. */
export function CallLine({
  call: { tool, input, inputText },
  isOpen,
  onToggle,
  children,
}: {
  call: CallEntry;
  isOpen: boolean;
  onToggle: () => void;
  children?: ReactNode;
}) {
  const words = toolTitle(tool);
  return (
    <div className="call-line">
      <ChevronRight className="chevron" aria-hidden="true" />
      <Wrench aria-hidden="true" />
      <h3>
        <button type="button" aria-expanded={isOpen} onClick={onToggle}>
          <PlainText text={words} />
        </button>
      </h3>
      {!isOpen && <span className="gist">{inputText === null && gistOf(input)}</span>}
      {isOpen && words !== tool && (
        <code className="tool">
          <PlainText text={tool} />
        </code>
      )}
      {children}
    </div>
  );
}

export function CallResult({ call: { state, output, error } }: { call: CallEntry }) {
  return (
    <>
      {error !== null && (
        <Fold label="Error" value={error} open>
          <LongText text={error} />
        </Fold>
      )}
      {state === 'done' && output !== undefined && (
        <Fold label="Output" value={output} open>
          <ValueView value={output} />
        </Fold>
      )}
    </>
  );
}
