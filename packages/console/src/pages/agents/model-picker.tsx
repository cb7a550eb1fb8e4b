// The name of a model: typed, or chosen from what the providers offer, with prices. It is a combobox: the input keeps the focus, and
// the arrows choose.
import type { ModelList } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { type FocusEvent, type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { useDollars } from '../../ui/dollars.tsx';
import { Field } from '../../ui/field.tsx';
import { visible } from '../../ui/text.tsx';
import { type ModelGroup, type OfferedModel, useModelLists } from './model-lists.ts';

// OpenAI lists a hundred. More than these are found by typing.
const MOST_OF_GROUP = 30;

export function ModelPicker({
  model,
  path,
  error,
  hint,
  runsIn,
  onType,
  onChoose,
}: {
  /** The provider, its address and its key; the name is `model`. */
  model: Record<string, unknown>;
  path: string;
  error: string | undefined;
  /** While nothing is known about the model. */
  hint: string;
  /** The environment whose keys the model will use. By default that of the page. */
  runsIn?: string;
  onType: (name: string) => void;
  onChoose: (provider: string, name: string) => void;
}) {
  const name = typeof model.model === 'string' ? model.model : '';
  const { groups, own, environment, isLoading, ask } = useModelLists(model, runsIn);
  const [isOpen, setOpen] = useState(false);
  // Only what was typed since the list opened narrows it.
  const [query, setQuery] = useState('');
  const [active, setActive] = useState(-1);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const shown = groups.map((group) => ({ ...group, models: matching(group, query) }));
  const options = shown.flatMap(({ provider, models }) =>
    models.slice(0, MOST_OF_GROUP).map((offered) => ({ provider, offered })),
  );
  const optionId = (index: number) => `${id}-option-${index}`;
  const hasList = isOpen && options.length > 0;
  useEffect(() => {
    if (active >= 0) list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [active]);

  function open() {
    ask();
    setOpen(true);
  }
  function close() {
    setOpen(false);
    setQuery('');
    setActive(-1);
  }
  function choose(index: number) {
    const { provider, offered } = options[index]!;
    onChoose(provider, offered.model);
    close();
  }
  function onKeyDown(event: KeyboardEvent) {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Escape' && isOpen) {
      event.preventDefault();
      event.stopPropagation();
      close();
    } else if (event.key === 'Enter' && isOpen && active >= 0) {
      event.preventDefault();
      choose(active);
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (!isOpen) return open();
      const step = event.key === 'ArrowDown' ? 1 : -1;
      if (options.length > 0) setActive((active + step + options.length) % options.length);
    }
  }
  const onBlur = ({ currentTarget, relatedTarget }: FocusEvent) => {
    if (!currentTarget.contains(relatedTarget)) close();
  };
  let index = -1;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only notices that the focus left
    <div className="model-picker" onBlur={onBlur}>
      <Field
        label="Model"
        error={error}
        hint={own && environment ? <ModelNote list={own} name={name} environment={environment} /> : hint}
      >
        {(ties) => (
          <input
            {...ties}
            className="input mono"
            role="combobox"
            aria-expanded={hasList}
            aria-controls={hasList ? `${id}-list` : undefined}
            aria-activedescendant={active >= 0 ? optionId(active) : undefined}
            aria-autocomplete="list"
            autoComplete="off"
            spellCheck={false}
            data-path={path}
            value={name}
            onFocus={ask}
            onClick={open}
            onKeyDown={onKeyDown}
            onChange={({ currentTarget }) => {
              open();
              setQuery(currentTarget.value);
              setActive(-1);
              onType(currentTarget.value);
            }}
          />
        )}
      </Field>
      {isOpen && groups.length > 0 && (
        <div className="model-choices" ref={list} tabIndex={-1}>
          {hasList && (
            <div role="listbox" id={`${id}-list`} aria-label="Models">
              {shown.map(({ provider, label, models }) =>
                models.length === 0 ? null : (
                  // biome-ignore lint/a11y/useSemanticElements: a fieldset is not allowed in a listbox
                  <div role="group" key={provider} aria-label={label}>
                    <div className="group-name" role="presentation">
                      {label}
                    </div>
                    {models.slice(0, MOST_OF_GROUP).map((offered) => {
                      index += 1;
                      const at = index;
                      return (
                        // biome-ignore lint/a11y/useKeyWithClickEvents: the input handles the keys
                        // biome-ignore lint/a11y/useFocusableInteractive: the input keeps the focus
                        <div
                          key={offered.model}
                          role="option"
                          id={optionId(at)}
                          aria-selected={at === active}
                          data-chosen={(provider === model.provider && offered.model === name) || undefined}
                          onMouseDown={(event) => event.preventDefault()}
                          onClick={() => choose(at)}
                          onPointerMove={() => setActive(at)}
                        >
                          <code>{visible(offered.model)}</code>
                          <span className="quiet small">{contextText(offered)}</span>
                          <span className="small price">{offered.prices && <Price of={offered.prices} />}</span>
                        </div>
                      );
                    })}
                  </div>
                ),
              )}
            </div>
          )}
          {shown.map(({ provider, label, list: found, models }) =>
            found?.problem ? (
              <p className="quiet small" key={provider}>
                {label}:{' '}
                {found.problem.code === 'model_key_missing' ? `no key in ${environment}` : found.problem.message}.
              </p>
            ) : models.length > MOST_OF_GROUP ? (
              <p className="quiet small" key={provider}>
                {label}: {models.length - MOST_OF_GROUP} more. Type to find them.
              </p>
            ) : null,
          )}
          {isLoading && <p className="quiet small">Loading the lists of the providers…</p>}
          {!isLoading && options.length === 0 && query !== '' && (
            <p className="quiet small">No provider lists this name. You can use it anyway.</p>
          )}
          {environment && (
            <p className="quiet small">
              What the keys of {environment} may use. Prices are per million tokens, as configured by the operator.
            </p>
          )}
        </div>
      )}
    </div>
  );
}

/** The models whose name has every word that was typed. */
function matching({ list }: ModelGroup, query: string): readonly OfferedModel[] {
  const words = query.toLowerCase().split(/\s+/);
  return (list?.models ?? []).filter(({ model, displayName }) => {
    const text = `${model} ${displayName ?? ''}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** What is known about the chosen model, or why there is no list. */
function ModelNote({ list, name, environment }: { list: ModelList; name: string; environment: string }) {
  const { organizationId, may } = useOrganization();
  if (list.problem) {
    const isKey = list.problem.code.startsWith('model_key');
    return (
      <>
        {list.problem.message}.{' '}
        {isKey && may('admin') && (
          <Link to="/$organizationId/environments/$name" params={{ organizationId, name: environment }}>
            Set the secret
          </Link>
        )}
        {isKey && !may('admin') && 'An admin sets it under Environments.'}
      </>
    );
  }
  const chosen = list.models.find(({ model }) => model === name);
  if (chosen)
    return (
      <>
        {aboutModel(chosen) || (chosen.prices ? '' : 'The provider offers this model.')}
        {chosen.prices && (
          <>
            {aboutModel(chosen) && ' · '}
            <Price of={chosen.prices} /> per million
          </>
        )}
      </>
    );
  const count = list.models.length.toLocaleString('en');
  return (
    <>
      {name === '' ? '' : 'Not in the provider’s list. '}
      Type to choose from {count} models that the key of {environment} may use.
    </>
  );
}

function aboutModel(model: OfferedModel): string {
  const { contextTokens, input, endsAt, replacement } = model;
  return [
    contextTokens !== null && `${contextTokens.toLocaleString('en')} tokens`,
    input !== null && input.length > 0 && `takes ${input.join(', ')}`,
    endsAt && `its provider ends it on ${endsAt}${replacement ? `; ${replacement} replaces it` : ''}`,
  ]
    .filter(Boolean)
    .join(' · ');
}

function Price({ of }: { of: NonNullable<OfferedModel['prices']> }) {
  return useDollars().price(of);
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

function contextText({ contextTokens }: OfferedModel): string {
  return contextTokens === null ? '' : `${compact.format(contextTokens)} tokens`;
}
