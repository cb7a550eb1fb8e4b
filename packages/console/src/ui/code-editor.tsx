// A field for code: instructions, JSON, JSON Schemas. CodeMirror is loaded when the first one is shown; until then, and if it can't be
// loaded, a textarea of the same size is in its place.
import type { FieldError } from '@signalbox/contract';
import { Component, type CSSProperties, lazy, type ReactNode, Suspense, useRef, useState } from 'react';
import type { EditorLanguage } from './editor/languages.ts';
import type { EditorProblem } from './editor/problems.ts';
import type { JsonSchema } from './editor/schema-at.ts';
import type { EditorHandle } from './editor/text-editor.tsx';
import { Field } from './field.tsx';
import './code-editor.css';

const TextEditor = lazy(() => import('./editor/text-editor.tsx').then((module) => ({ default: module.TextEditor })));
const TextDiff = lazy(() => import('./editor/text-diff.tsx').then((module) => ({ default: module.TextDiff })));

const MOST_LISTED = 5;

export interface CodeEditorProps {
  label: string;
  value: string;
  /** Without it, the text is read-only. */
  onChange?: (text: string) => void;
  language: EditorLanguage;
  /** The schema of the value, for `json`: completes, explains and validates it. */
  schema?: JsonSchema;
  /** Whether the schema validates; false if `problems` are those of the schema. */
  validates?: boolean;
  /** Problems that the owner found, by their path in the JSON. They are shown at their lines, and listed. */
  problems?: readonly FieldError[];
  /** Whether problems are listed below the text. */
  listed?: boolean;
  hint?: ReactNode;
  error?: string | undefined;
  /** Shows the label only to screen readers. */
  quiet?: boolean;
  /** The height: at least and at most so many lines. */
  lines?: number;
  mostLines?: number;
  /** Tab indents. Escape and then Tab leaves. */
  indentsWithTab?: boolean;
  placeholder?: string;
  'data-path'?: string;
}

export function CodeEditor(props: CodeEditorProps) {
  const { label, value, onChange, language, schema, problems = [], listed = true, hint, error, quiet } = props;
  const { validates = true, lines = 4, mostLines = Math.max(lines, 24), indentsWithTab = false, placeholder } = props;
  const [found, setFound] = useState<readonly EditorProblem[]>([]);
  const handle = useRef<EditorHandle>(null);
  const readOnly = onChange === undefined;
  const isWrong = error !== undefined || found.length > 0;
  const path = props['data-path'];
  return (
    <Field {...{ label, hint, error }} {...(quiet && { quiet })} onLabel={() => handle.current?.focus()}>
      {(ties) => {
        const described = [
          ties['aria-describedby'],
          listed && found.length > 0 && `${ties.id}-problems`,
          indentsWithTab && !readOnly && `${ties.id}-keys`,
        ].filter(Boolean);
        const shared = {
          id: ties.id,
          ...(path !== undefined && { 'data-path': path }),
          ...(described.length > 0 && { 'aria-describedby': described.join(' ') }),
          ...(isWrong && { 'aria-invalid': 'true' as const }),
        };
        const plain = (
          <textarea
            {...shared}
            className="input mono"
            spellCheck={language === 'markdown'}
            readOnly={readOnly}
            placeholder={placeholder}
            value={value}
            onChange={({ currentTarget }) => onChange?.(currentTarget.value)}
          />
        );
        return (
          <>
            <div
              className={`code-editor ${language}`}
              style={{ '--lines': lines, '--most-lines': mostLines } as CSSProperties}
            >
              <IfItLoads fallback={plain}>
                <Suspense fallback={plain}>
                  <TextEditor
                    {...{ value, onChange, language, readOnly, schema, validates, indentsWithTab, handle }}
                    known={problems}
                    empty={placeholder}
                    attributes={{ ...shared, 'aria-labelledby': `${ties.id}-label` }}
                    onProblems={(next) => setFound((before) => (isSame(before, next) ? before : next))}
                  />
                </Suspense>
              </IfItLoads>
            </div>
            {indentsWithTab && !readOnly && (
              <span id={`${ties.id}-keys`} className="hint">
                Tab indents. Press Escape, then Tab, to leave the editor.
              </span>
            )}
            {listed && (
              <div id={`${ties.id}-problems`} className="code-problems" aria-live="polite">
                <ProblemList problems={found} onChoose={({ from }) => handle.current?.show(from)} />
              </div>
            )}
          </>
        );
      }}
    </Field>
  );
}

function ProblemList({
  problems,
  onChoose,
}: {
  problems: readonly EditorProblem[];
  onChoose: (problem: EditorProblem) => void;
}) {
  if (problems.length === 0) return null;
  const more = problems.length - MOST_LISTED;
  return (
    <ul>
      {problems.slice(0, MOST_LISTED).map((problem) => (
        <li key={`${problem.from} ${problem.message}`}>
          <button type="button" className="link" onClick={() => onChoose(problem)}>
            Line {problem.line}
          </button>{' '}
          {problem.message}
        </li>
      ))}
      {more > 0 && <li>and {more} more</li>}
    </ul>
  );
}

function isSame(one: readonly EditorProblem[], other: readonly EditorProblem[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** The differences of two texts, as long as they are. */
export function CodeDiff({
  before,
  after,
  language,
  label,
  sideBySide = false,
}: {
  before: string;
  after: string;
  language: EditorLanguage;
  /** What is compared, for screen readers. */
  label: string;
  sideBySide?: boolean;
}) {
  const plain = (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard
    <pre className="text-diff-plain" tabIndex={0}>
      {after}
    </pre>
  );
  return (
    <section className={`code-editor diff ${language}`} aria-label={`Changes: ${label}`}>
      <IfItLoads fallback={plain}>
        <Suspense fallback={plain}>
          <TextDiff {...{ before, after, language, label, sideBySide }} />
        </Suspense>
      </IfItLoads>
    </section>
  );
}

/** The fallback stays if the code can't be loaded. */
class IfItLoads extends Component<{ fallback: ReactNode; children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };
  static getDerivedStateFromError() {
    return { failed: true };
  }
  override render() {
    return this.state.failed ? this.props.fallback : this.props.children;
  }
}
