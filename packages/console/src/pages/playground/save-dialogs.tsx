// Saves what a column runs: as a version of its agent, or as a new agent.
import type { Agent } from '@signalbox/client';
import { useRef, useState } from 'react';
import { useApiMutation, useApiQuery, useOrganization } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/field.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { SkeletonCards } from '../../ui/skeleton.tsx';
import { ConflictDialog } from '../agents/conflict.tsx';
import { bodyOf, type Definition, definitionOf } from '../agents/definition.ts';
import { DefinitionDiff } from '../agents/diff-view.tsx';
import { saveVersion } from '../agents/saving.ts';
import { readVersion } from './entry.ts';
import { type Column, ranDefinition, toolsOf } from './state.ts';

type Source = NonNullable<Column['source']>;

interface Props {
  column: Column;
  onSaved: (agent: Agent) => void;
  onClose: () => void;
}

export function SaveVersion({ column, source, onSaved, onClose }: Props & { source: Source }) {
  const { client } = useOrganization();
  const definition = ranDefinition(column);
  const [seen, setSeen] = useState<Agent>();
  const [newest, setNewest] = useState<Agent>();
  // The form closes when it has been submitted, unless a conflict replaces it.
  const isRefused = useRef(false);
  const { data: loaded } = useApiQuery(['agents', source.agentId, 'playground', source.version], (client) =>
    readVersion(client, source.agentId, source.version),
  );
  const base = seen ?? loaded;
  const save = useApiMutation(
    async (_, from: Agent) => {
      const saving = await saveVersion(client, { seen: from, definition });
      if ('saved' in saving) onSaved(saving.saved);
      return saving;
    },
    ['agents'],
  );
  if (base && newest) {
    return (
      <ConflictDialog
        seen={base}
        newest={newest}
        mine={definition}
        onTake={() => onSaved(newest)}
        onSave={async () => {
          const saving = await save.mutateAsync(newest);
          if (!('newest' in saving)) return;
          setSeen(newest);
          setNewest(saving.newest);
        }}
        onClose={onClose}
      />
    );
  }
  return (
    <FormDialog
      title={`Save as a version of ${source.name}`}
      action="Save version"
      wide
      submit={async () => {
        if (!base) return;
        const saving = await save.mutateAsync(base);
        // The dialog stays open, with what the other user has changed.
        isRefused.current = 'newest' in saving;
        if ('newest' in saving) setNewest(saving.newest);
      }}
      onClose={() => !isRefused.current && onClose()}
    >
      <p>Sessions of {source.name} run the new version from their next turn.</p>
      <SavedTools column={column} />
      {base ? <DefinitionDiff before={definitionOf(base)} after={definition} /> : <SkeletonCards cards={1} />}
    </FormDialog>
  );
}

export function SaveAgent({ column, onSaved, onClose }: Props) {
  const { client } = useOrganization();
  const definition = ranDefinition(column);
  const [name, setName] = useState(String(definition.name ?? ''));
  const save = useApiMutation((_, body: Definition) => client.agents.create(bodyOf(body)), ['agents']);
  return (
    <FormDialog
      title="Save as a new agent"
      action="Create agent"
      beside={['name']}
      submit={async () => onSaved(await save.mutateAsync({ ...definition, name }))}
      onClose={onClose}
    >
      <TextField
        label="Name"
        value={name}
        error={fieldError(save.error, 'name')}
        onChange={({ currentTarget: { value } }) => setName(value)}
      />
      <SavedTools column={column} />
    </FormDialog>
  );
}

/** What is not as the definition shows it. */
function SavedTools({ column }: { column: Column }) {
  const off = toolsOf(column.definition).length - toolsOf(ranDefinition(column)).length;
  return (
    <p className="quiet small">
      {off > 0 && 'Tools that are off are not saved. '}Mocks belong to the playground and are not saved.
    </p>
  );
}
