// The filters of a list, in one row: the search, then those that are set as chips, then "+ Filter" for the others.
import { Plus, Search, X } from 'lucide-react';
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import { Button } from './button.tsx';
import { type Option, TextField, textsOf } from './field.tsx';
import { Popover } from './popover.tsx';

export interface Filter {
  /** As a noun: "Status", "End user". */
  label: string;
  /** The value in the URL. Undefined if it is not set. */
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  /** The values to choose from. Without them, it is a text. A value that is not among them is shown as it is. */
  options?: readonly Option[];
  /** For a text: which values are valid, what to say about others, and an example. */
  pattern?: Pick<RegExp, 'test'>;
  refusal?: string;
  placeholder?: string;
}

export interface SearchFilter {
  /** "Search sessions" */
  label: string;
  value: string;
  onChange: (value: string) => void;
}

export function FilterBar({
  search,
  filters,
  children,
}: {
  search?: SearchFilter;
  filters: readonly Filter[];
  /** Controls that are always there, such as a time range, and a count. */
  children?: ReactNode;
}) {
  const set = filters.filter(({ value }) => value !== undefined);
  const unset = filters.filter(({ value }) => value === undefined);
  return (
    <search className="filter-bar">
      {search && <SearchField {...search} />}
      {children}
      {set.map((filter) => (
        <Chip key={filter.label} filter={filter} />
      ))}
      {unset.length > 0 && <AddFilter filters={unset} />}
      {set.length > 1 && (
        <Button look="bare" small onClick={() => clearAll(set)}>
          Clear all
        </Button>
      )}
    </search>
  );
}

function clearAll(filters: readonly Filter[]): void {
  for (const { onChange } of filters) onChange(undefined);
}

// Long enough that a word is typed without a request for each letter.
const TYPING_MS = 250;

function SearchField({ label, value, onChange }: SearchFilter) {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const sent = useRef(value);
  useEffect(() => () => clearTimeout(timer.current), []);
  // The URL changed by a link or by going back.
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
  }, [value]);
  function send(next: string) {
    clearTimeout(timer.current);
    const trimmed = next.trim();
    if (trimmed === sent.current) return;
    sent.current = trimmed;
    onChange(trimmed);
  }
  return (
    <label className="search-field">
      <Search aria-hidden="true" />
      <span className="visually-hidden">{label}</span>
      <input
        className="input"
        type="search"
        data-search
        placeholder={label}
        value={text}
        onChange={(event) => {
          const next = event.currentTarget.value;
          setText(next);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => send(next), TYPING_MS);
        }}
        onKeyDown={(event) => event.key === 'Enter' && send(text)}
      />
    </label>
  );
}

function textOf({ value = '', options }: Filter): string {
  return options?.find((option) => option.value === value)?.label ?? value;
}

function Chip({ filter }: { filter: Filter }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <span className="filter-chip">
      <Popover
        label={filter.label}
        isOpen={isOpen}
        onOpenChange={setOpen}
        trigger={
          <button type="button">
            {filter.label} is <strong>{textOf(filter)}</strong>
          </button>
        }
      >
        <Editor filter={filter} done={() => setOpen(false)} />
      </Popover>
      <button type="button" aria-label={`Remove the filter ${filter.label}`} onClick={() => filter.onChange(undefined)}>
        <X aria-hidden="true" />
      </button>
    </span>
  );
}

function AddFilter({ filters }: { filters: readonly Filter[] }) {
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState<string>();
  const filter = filters.find(({ label }) => label === chosen);
  return (
    <Popover
      label="Add a filter"
      isOpen={isOpen}
      onOpenChange={(next) => {
        setOpen(next);
        setChosen(undefined);
      }}
      trigger={
        <Button look="bare">
          <Plus aria-hidden="true" />
          Filter
        </Button>
      }
    >
      {filter ? (
        <Editor
          filter={filter}
          done={() => {
            setOpen(false);
            setChosen(undefined);
          }}
        />
      ) : (
        <div className="options-list">
          {filters.map(({ label }) => (
            <button type="button" key={label} onClick={() => setChosen(label)}>
              {label}
            </button>
          ))}
        </div>
      )}
    </Popover>
  );
}

function Editor({ filter, done }: { filter: Filter; done: () => void }) {
  const { label, value, options, onChange } = filter;
  if (!options) return <TextEditor filter={filter} done={done} />;
  return (
    <fieldset className="options-list">
      <legend>{label}</legend>
      {options.length === 0 && <p className="quiet">None</p>}
      {options.map((option, index) => (
        <button
          type="button"
          key={option.value}
          // biome-ignore lint/a11y/noAutofocus: the list replaces the one that the user chose from
          autoFocus={index === 0}
          aria-pressed={option.value === value}
          onClick={() => {
            onChange(option.value);
            done();
          }}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}

function TextEditor({ filter, done }: { filter: Filter; done: () => void }) {
  const { label, value, onChange, pattern, refusal, placeholder } = filter;
  const [error, setError] = useState<string>();
  function onSubmit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const text = textsOf(event.currentTarget, ['text']).text.trim();
    if (text !== '' && pattern && !pattern.test(text)) return setError(refusal ?? 'This value is not valid.');
    onChange(text === '' ? undefined : text);
    done();
  }
  return (
    <form className="stack tight" onSubmit={onSubmit} noValidate>
      <TextField label={label} name="text" autoFocus defaultValue={value} placeholder={placeholder} error={error} />
      <Button type="submit" small>
        Apply
      </Button>
    </form>
  );
}
