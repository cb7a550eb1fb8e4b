// CodeMirror as a field. Loaded when the first editor is shown (code-editor.tsx).
import './styles.ts';
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { bracketMatching, codeFolding, foldGutter, foldKeymap, indentOnInput, indentUnit } from '@codemirror/language';
import { type Diagnostic, linter, lintGutter, lintKeymap } from '@codemirror/lint';
import { search, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState, type Extension, StateEffect } from '@codemirror/state';
import { EditorView, hoverTooltip, keymap, lineNumbers, placeholder } from '@codemirror/view';
import type { FieldError } from '@signalbox/contract';
import { useEffect, useImperativeHandle, useLayoutEffect, useRef } from 'react';
import { type EditorLanguage, languageOf } from './languages.ts';
import { type EditorProblem, findProblems } from './problems.ts';
import type { JsonSchema } from './schema-at.ts';
import { completeFrom, hoverFrom } from './schema-help.ts';
import { showUnseen } from './unseen.ts';

export interface TextEditorProps {
  value: string;
  onChange?: ((text: string) => void) | undefined;
  language: EditorLanguage;
  readOnly: boolean;
  /** Attributes of the element that has the focus: id, label, description. */
  attributes: Readonly<Record<string, string>>;
  schema?: JsonSchema | undefined;
  validates: boolean;
  known: readonly FieldError[];
  indentsWithTab: boolean;
  empty?: string | undefined;
  onProblems: (problems: readonly EditorProblem[]) => void;
  /** Receives a function that moves the cursor to a problem. */
  handle: React.Ref<EditorHandle>;
}

export interface EditorHandle {
  show(position: number): void;
  focus(): void;
}

const knownChanged = StateEffect.define<null>();
const LINT_DELAY_MS = 300;

const basics: Extension = [
  history(),
  indentUnit.of('  '),
  indentOnInput(),
  bracketMatching(),
  closeBrackets(),
  search({ top: true }),
  showUnseen,
  EditorView.lineWrapping,
  keymap.of([
    ...closeBracketsKeymap,
    ...defaultKeymap,
    ...searchKeymap,
    ...historyKeymap,
    ...foldKeymap,
    ...completionKeymap,
    ...lintKeymap,
  ]),
];

export function TextEditor(props: TextEditorProps) {
  const { value, language, readOnly, attributes, schema, known, indentsWithTab, empty, handle } = props;
  const frame = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const settings = useRef(new Compartment());
  // What the editor's listeners read, which live longer than a render.
  const latest = useRef(props);
  // The text that the owner received last: only another one replaces the text of the editor.
  const told = useRef(value);
  useLayoutEffect(() => {
    latest.current = props;
  });

  const attributesText = JSON.stringify(attributes);
  const changing = (): Extension => [
    EditorView.contentAttributes.of({
      // It is in the tab order anyway, but programs that check pages don’t know that.
      tabindex: '0',
      ...attributes,
      ...(readOnly && { 'aria-readonly': 'true' }),
      ...(language === 'markdown' && { spellcheck: 'true', autocorrect: 'on', autocapitalize: 'on' }),
    }),
    EditorState.readOnly.of(readOnly),
    indentsWithTab && !readOnly ? keymap.of([indentWithTab]) : [],
    empty === undefined ? [] : placeholder(empty),
    schema && language === 'json'
      ? [autocompletion({ override: [completeFrom(schema)], icons: false }), hoverTooltip(hoverFrom(schema))]
      : [],
  ];

  // biome-ignore lint/correctness/useExhaustiveDependencies: made once; what changes is reconfigured below
  useLayoutEffect(() => {
    const isJson = language === 'json';
    const made = new EditorView({
      parent: frame.current!,
      state: EditorState.create({
        doc: value,
        extensions: [
          basics,
          languageOf(language),
          settings.current.of(changing()),
          isJson ? [lineNumbers(), codeFolding(), foldGutter(), jsonLinter(latest)] : [],
          EditorView.updateListener.of((update) => {
            if (!update.docChanged) return;
            const text = update.state.doc.toString();
            if (text === told.current) return;
            told.current = text;
            latest.current.onChange?.(text);
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, [language]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `changing` reads the same values
  useEffect(() => {
    view.current?.dispatch({ effects: settings.current.reconfigure(changing()) });
  }, [attributesText, readOnly, indentsWithTab, empty, schema, language]);

  useEffect(() => {
    const { state } = view.current!;
    if (value === told.current) return;
    told.current = value;
    view.current!.dispatch({ changes: replacement(state.doc.toString(), value) });
  }, [value]);

  const knownText = JSON.stringify(known);
  // biome-ignore lint/correctness/useExhaustiveDependencies: they are compared by their text
  useEffect(() => {
    view.current?.dispatch({ effects: knownChanged.of(null) });
  }, [knownText, schema]);

  useImperativeHandle(
    handle,
    (): EditorHandle => ({
      show: (position) => {
        const editor = view.current!;
        const at = Math.min(position, editor.state.doc.length);
        editor.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: 'center' }) });
        editor.focus();
      },
      focus: () => view.current?.focus(),
    }),
    [],
  );

  return <div ref={frame} className="code-editor-view" />;
}

function jsonLinter(latest: React.RefObject<TextEditorProps>): Extension {
  const source = async ({ state }: EditorView): Promise<readonly Diagnostic[]> => {
    const { schema, validates, known, onProblems } = latest.current;
    const found = await findProblems(state, { schema: validates ? schema : undefined, known });
    onProblems(found.map(({ from, message }) => ({ from, message, line: state.doc.lineAt(from).number })));
    return found;
  };
  return [
    lintGutter(),
    linter(source, {
      delay: LINT_DELAY_MS,
      needsRefresh: ({ transactions }) =>
        transactions.some(({ effects }) => effects.some((effect) => effect.is(knownChanged))),
    }),
  ];
}

/** The part that differs, so that the cursor and the history stay. */
function replacement(before: string, after: string): { from: number; to: number; insert: string } {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return { from: head, to: before.length - tail, insert: after.slice(head, after.length - tail) };
}
