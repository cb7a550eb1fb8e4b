// Views of a list as tabs: those of the page, and those that the person saved in this browser. A view is a set of filters.
import { Plus, X } from 'lucide-react';
import { type FormEvent, useState, useSyncExternalStore } from 'react';
import { Button } from './button.tsx';
import { TextField, textsOf } from './field.tsx';
import { Popover } from './popover.tsx';

export interface View<S> {
  label: string;
  search: S;
}

export function SavedViews<S extends object>({
  name,
  views,
  search,
  onChoose,
}: {
  /** For the browser's storage, with the organization's id if the filters are about its data. */
  name: string;
  views: readonly View<S>[];
  /** The filters in the URL. */
  search: S;
  onChoose: (search: S) => void;
}) {
  const [own, setOwn] = useStored<S>(`signalbox.views.${name}`);
  const current = keyOf(search);
  const isKnown = [...views, ...own].some((view) => keyOf(view.search) === current);
  return (
    <nav className="views" aria-label="Views">
      {views.map((view) => (
        <ViewTab key={view.label} view={view} current={current} onChoose={onChoose} />
      ))}
      {own.map((view) => (
        <span className="own" key={view.label}>
          <ViewTab view={view} current={current} onChoose={onChoose} />
          <button
            type="button"
            aria-label={`Delete the view ${view.label}`}
            onClick={() => setOwn(own.filter((one) => one !== view))}
          >
            <X aria-hidden="true" />
          </button>
        </span>
      ))}
      {!isKnown && (
        <SaveView
          taken={[...views, ...own].map(({ label }) => label)}
          onSave={(label) => setOwn([...own, { label, search }])}
        />
      )}
    </nav>
  );
}

function ViewTab<S>({ view, current, onChoose }: { view: View<S>; current: string; onChoose: (search: S) => void }) {
  return (
    <button
      type="button"
      aria-current={keyOf(view.search) === current ? 'page' : undefined}
      onClick={() => onChoose(view.search)}
    >
      {view.label}
    </button>
  );
}

function SaveView({ taken, onSave }: { taken: readonly string[]; onSave: (label: string) => void }) {
  const [isOpen, setOpen] = useState(false);
  const [error, setError] = useState<string>();
  function onSubmit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const label = textsOf(event.currentTarget, ['label']).label.trim();
    const problem = label === '' ? 'Enter a name.' : taken.includes(label) ? 'Another view has this name.' : undefined;
    setError(problem);
    if (problem) return;
    setOpen(false);
    onSave(label);
  }
  return (
    <Popover
      label="Save view"
      isOpen={isOpen}
      onOpenChange={setOpen}
      trigger={
        <Button look="bare" small>
          <Plus aria-hidden="true" />
          Save view
        </Button>
      }
    >
      <form className="stack tight" onSubmit={onSubmit} noValidate>
        <TextField
          label="Name"
          name="label"
          hint="The view is a tab in this browser. To share it, copy the address of the list."
          maxLength={40}
          error={error}
        />
        <Button type="submit" small>
          Save
        </Button>
      </form>
    </Popover>
  );
}

/** Filters without those that are not set, in an order that does not matter. */
function keyOf(search: unknown): string {
  const set = Object.entries(search as object).filter(([name, value]) => value !== undefined && name !== 'environment');
  return JSON.stringify(set.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

const listeners = new Set<() => void>();

function useStored<S>(key: string): [views: View<S>[], store: (views: View<S>[]) => void] {
  const text = useSyncExternalStore(subscribe, () => localStorage.getItem(key) ?? '[]');
  return [
    readViews(text),
    (views) => {
      localStorage.setItem(key, JSON.stringify(views));
      for (const listener of listeners) listener();
    },
  ];
}

function readViews<S>(text: string): View<S>[] {
  try {
    return JSON.parse(text);
  } catch {
    return [];
  }
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // Changed in another tab.
  addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    removeEventListener('storage', listener);
  };
}
