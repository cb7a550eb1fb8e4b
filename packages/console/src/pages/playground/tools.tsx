// The tools of a column: each runs, is mocked, or is off.
import { Plus, X } from 'lucide-react';
import { Button } from '../../ui/button.tsx';
import { Checkbox } from '../../ui/field.tsx';
import { Segmented } from '../../ui/segmented.tsx';
import { PlainText } from '../../ui/text.tsx';
import { type Column, choiceOf, nameOf, type ToolChoice, toolNames, toolsOf } from './state.ts';

const uses = [
  { value: 'run', label: 'Run' },
  { value: 'mock', label: 'Mock' },
  { value: 'off', label: 'Off' },
] as const;

export function ToolChoices({ column, onChange }: { column: Column; onChange: (tools: Column['tools']) => void }) {
  const names = toolNames(column);
  if (names.length === 0) return <p className="quiet small">No tools. Add them to the definition as JSON.</p>;
  const own = toolsOf(column.definition);
  return (
    <ul className="playground-tools">
      {names.map((name) => {
        const choice = choiceOf(column, name);
        const type = own.find((tool) => nameOf(tool) === name)?.type ?? 'mcp';
        // The model’s provider runs it.
        const possible = type === 'web_search' ? uses.filter(({ value }) => value !== 'mock') : uses;
        const set = (change: Partial<ToolChoice>) => onChange({ ...column.tools, [name]: { ...choice, ...change } });
        return (
          <li key={name}>
            <div className="row apart">
              <span className="playground-tool">
                <code>
                  <PlainText text={name} />
                </code>{' '}
                <span className="quiet small">{String(type)}</span>
              </span>
              <Segmented
                label={`Use of ${name}`}
                value={choice.use}
                options={possible}
                onChange={(use) => set({ use })}
              />
            </div>
            {choice.use === 'mock' && (
              <details className="playground-mock" open={names.length <= MOST_OPEN}>
                <summary>
                  <PlainText text={summaryOf(choice)} />
                </summary>
                <Mock name={name} choice={choice} onChange={set} />
              </details>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** With more tools, what mocks return is folded. */
const MOST_OPEN = 2;
const SUMMARY_CHARACTERS = 120;

/** What a mock returns, in a line. */
function summaryOf({ results: [first, ...more] }: ToolChoice): string {
  const text = first!.text.slice(0, SUMMARY_CHARACTERS).replaceAll(/\s+/g, ' ').toWellFormed() || 'nothing';
  return `${first!.kind === 'error' ? 'Fails:' : 'Returns'} ${text}${more.length > 0 ? `, and ${more.length} more` : ''}`;
}

// The service takes more, but people do not type more.
const MAX_RESULTS = 10;

function Mock({
  name,
  choice: { results, keepsApproval },
  onChange,
}: {
  name: string;
  choice: ToolChoice;
  onChange: (change: Partial<ToolChoice>) => void;
}) {
  const change = (index: number, next: Partial<ToolChoice['results'][number]>) =>
    onChange({ results: results.map((one, at) => (at === index ? { ...one, ...next } : one)) });
  return (
    <div className="stack tight">
      {results.map((result, index) => {
        const which =
          results.length === 1
            ? 'every call'
            : index === results.length - 1
              ? `call ${index + 1} and later`
              : `call ${index + 1}`;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a result is its position
          <div className="playground-result" key={index}>
            <div className="row apart">
              <label className="row">
                <span className="small quiet">Result of {which}</span>
                <select
                  className="input"
                  aria-label={`Kind of result of ${name}, ${which}`}
                  value={result.kind}
                  onChange={({ currentTarget: { value } }) => change(index, { kind: value as 'output' | 'error' })}
                >
                  <option value="output">Output</option>
                  <option value="error">Error</option>
                </select>
              </label>
              {results.length > 1 && (
                <Button
                  small
                  look="bare"
                  className="icon"
                  aria-label={`Remove the result of ${which}`}
                  onClick={() => onChange({ results: results.filter((_, at) => at !== index) })}
                >
                  <X aria-hidden="true" />
                </Button>
              )}
            </div>
            <textarea
              className="input mono"
              rows={Math.min(6, Math.max(2, result.text.split('\n').length))}
              spellCheck={false}
              aria-label={`Result of ${name}, ${which}`}
              placeholder={result.kind === 'output' ? 'JSON or text' : 'What the model reads as the error'}
              value={result.text}
              onChange={({ currentTarget: { value } }) => change(index, { text: value })}
            />
          </div>
        );
      })}
      <div className="row apart">
        {results.length < MAX_RESULTS ? (
          <Button small look="bare" onClick={() => onChange({ results: [...results, { kind: 'output', text: '' }] })}>
            <Plus aria-hidden="true" /> Another result for the next call
          </Button>
        ) : (
          <span />
        )}
        <Checkbox
          label="Ask for approval"
          checked={keepsApproval}
          onChange={({ currentTarget }) => onChange({ keepsApproval: currentTarget.checked })}
        />
      </div>
    </div>
  );
}
