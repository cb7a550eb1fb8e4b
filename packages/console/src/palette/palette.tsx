// The command palette: pages, things by name or id, and actions, by a few letters. It is a combobox: the input keeps the focus, and the
// arrows choose.
import { Search } from 'lucide-react';
import { Fragment, type KeyboardEvent, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { Keys } from '../shortcuts/keys.tsx';
import { useDismiss } from '../ui/modal.ts';
import { visible } from '../ui/text.tsx';
import type { PaletteItem } from './item.ts';
import { useLocalItems } from './local-items.ts';
import { matchOf } from './match.ts';
import { useRemoteItems } from './remote-items.ts';
import './palette.css';

const MOST = 40;
const MOST_OF_GROUP = 6;
/** Without a query: where people go most. */
const first = ['Recent', 'Pages', 'Actions'];

export function Palette({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState('');
  const [chosen, setChosen] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const dismiss = useDismiss(dialog, onClose);
  const local = useLocalItems();
  const { items: remote, isAsking } = useRemoteItems(query);
  const found = useMemo(() => foundIn(local, query), [local, query]);
  const items = [
    ...remote.filter(({ group }) => group === 'Go to'),
    ...found,
    ...remote.filter(({ group }) => group !== 'Go to'),
  ];
  const at = Math.min(chosen, items.length - 1);
  const optionId = (index: number) => `${id}-${index}`;

  useLayoutEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  });

  function run(item: PaletteItem | undefined) {
    if (!item) return;
    onClose();
    item.run();
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.nativeEvent.isComposing) return;
    const to: Record<string, number> = {
      ArrowDown: (at + 1) % items.length,
      ArrowUp: (at - 1 + items.length) % items.length,
      Home: 0,
      End: items.length - 1,
      PageDown: Math.min(items.length - 1, at + 8),
      PageUp: Math.max(0, at - 8),
    };
    const isInText = query !== '' && (event.key === 'Home' || event.key === 'End');
    if (event.key === 'Enter') {
      event.preventDefault();
      run(items[at]);
    } else if (event.key in to && items.length > 0 && !isInText) {
      event.preventDefault();
      setChosen(to[event.key]!);
    }
  }

  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it
    <dialog
      ref={dialog}
      className="palette"
      aria-label="Search and commands"
      {...dismiss}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div className="field-line">
        <Search aria-hidden="true" />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={items.length > 0 ? optionId(at) : undefined}
          aria-autocomplete="list"
          aria-label="Search and commands"
          placeholder="Search for a page, an agent, a session, an ID, or an action"
          autoComplete="off"
          spellCheck={false}
          autoFocus
          value={query}
          onChange={(event) => {
            setQuery(event.currentTarget.value);
            setChosen(0);
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <div className="results" id={`${id}-list`} role="listbox" aria-label="Results" ref={list} aria-busy={isAsking}>
        {items.map((item, index) => {
          const Icon = item.icon;
          return (
            <Fragment key={item.id}>
              {items[index - 1]?.group !== item.group && (
                <div className="group-name" role="presentation">
                  {item.group}
                </div>
              )}
              {/* biome-ignore lint/a11y/useKeyWithClickEvents: the input handles the keys */}
              {/* biome-ignore lint/a11y/useFocusableInteractive: the input keeps the focus */}
              <div
                role="option"
                id={optionId(index)}
                aria-selected={index === at}
                onClick={() => run(item)}
                onPointerMove={() => setChosen(index)}
              >
                <Icon aria-hidden="true" />
                <span className="label">{visible(item.label)}</span>
                {item.detail && <span className="detail">{visible(item.detail)}</span>}
                {item.keys && <Keys keys={item.keys} />}
              </div>
            </Fragment>
          );
        })}
      </div>
      <p className="quiet none" role="status">
        {items.length === 0 && (isAsking ? 'Searching…' : `Nothing found for “${query.trim()}”.`)}
      </p>
    </dialog>
  );
}

/** The items that match, the best group first. */
function foundIn(items: readonly PaletteItem[], query: string): PaletteItem[] {
  const text = query.trim();
  if (text === '') return items.filter(({ group }) => first.includes(group)).slice(0, MOST);
  const scored = items.flatMap((item) => {
    const score =
      matchOf(text, item.label) ?? lower(matchOf(text, `${item.label} ${item.detail ?? ''} ${item.words ?? ''}`, true));
    return score === undefined ? [] : [{ item, score }];
  });
  const groups = new Map<string, { item: PaletteItem; score: number }[]>();
  for (const one of scored.sort((a, b) => b.score - a.score)) {
    groups.set(one.item.group, [...(groups.get(one.item.group) ?? []), one]);
  }
  // For programs, and with the words of the actions: below what the console itself does.
  const documentation = groups.get('Documentation');
  if (documentation) {
    groups.delete('Documentation');
    groups.set('Documentation', documentation);
  }
  return [...groups.values()].flatMap((group) => group.slice(0, MOST_OF_GROUP).map(({ item }) => item)).slice(0, MOST);
}

/** What only the details match is below what the name matches. */
function lower(score: number | undefined): number | undefined {
  return score === undefined ? undefined : score / 2 - 40;
}
