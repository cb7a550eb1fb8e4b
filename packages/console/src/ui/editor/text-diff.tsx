// The differences of two texts: side by side if there is room, else one below the other.
import './styles.ts';
import { MergeView, unifiedMergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import { useLayoutEffect, useRef } from 'react';
import { type EditorLanguage, languageOf } from './languages.ts';
import { showUnseen } from './unseen.ts';

const collapseUnchanged = { margin: 3, minSize: 4 };
// More exact than the default, and still fast at a megabyte.
const diffConfig = { scanLimit: 2_000, timeout: 500 };

export function TextDiff({
  before,
  after,
  language,
  label,
  sideBySide,
}: {
  before: string;
  after: string;
  language: EditorLanguage;
  label: string;
  sideBySide: boolean;
}) {
  const frame = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const parent = frame.current!;
    const extensions = (name: string): Extension => [
      languageOf(language),
      lineNumbers(),
      showUnseen,
      EditorView.lineWrapping,
      EditorState.readOnly.of(true),
      EditorView.contentAttributes.of({ tabindex: '0', 'aria-label': name, 'aria-readonly': 'true' }),
    ];
    if (sideBySide) {
      const view = new MergeView({
        parent,
        a: { doc: before, extensions: extensions(`${label}, before`) },
        b: { doc: after, extensions: extensions(`${label}, after`) },
        gutter: true,
        collapseUnchanged,
        diffConfig,
      });
      return () => view.destroy();
    }
    const view = new EditorView({
      parent,
      doc: after,
      extensions: [
        extensions(label),
        unifiedMergeView({ original: before, mergeControls: false, gutter: true, collapseUnchanged, diffConfig }),
      ],
    });
    return () => view.destroy();
  }, [before, after, language, label, sideBySide]);
  return <div ref={frame} className="text-diff" />;
}
