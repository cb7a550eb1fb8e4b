import type { Agent } from '@signalbox/client';
import { useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Time } from '../../ui/time.tsx';
import { changedFields, type Definition, definitionOf } from './definition.ts';
import { DefinitionDiff } from './diff-view.tsx';

/** Two users changed the same version: shows the other user's changes, and asks what to do with one's own. */
export function ConflictDialog({
  seen,
  newest,
  mine,
  onTake,
  onSave,
  onClose,
}: {
  seen: Agent;
  newest: Agent;
  mine: Definition;
  onTake: () => void;
  onSave: () => Promise<void>;
  onClose: () => void;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const theirs = changedFields(definitionOf(seen), definitionOf(newest));
  const both = changedFields(definitionOf(seen), mine).filter((field) => theirs.includes(field));
  async function save() {
    setBusy(true);
    setError(undefined);
    try {
      await onSave();
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  }
  return (
    <Dialog title={`Version ${newest.version} was saved in the meantime`} wide onClose={onClose}>
      <p>
        You started from version {seen.version}. Version {newest.version} was saved <Time at={newest.updatedAt} /> with
        these changes:
      </p>
      <DefinitionDiff before={definitionOf(seen)} after={definitionOf(newest)} />
      <p>
        {both.length > 0 ? `You both changed: ${both.join(', ')}. ` : ''}If you save your changes, the new version
        contains your form and none of the changes above. Version {newest.version} stays in the list of versions.
      </p>
      {error !== undefined && <ErrorNotice error={error} />}
      <div className="foot">
        <Button onClick={onClose}>Keep editing</Button>
        <Button onClick={onTake}>Discard mine, use version {newest.version}</Button>
        <Button look="danger" busy={busy} onClick={() => void save()}>
          Save mine as a new version
        </Button>
      </div>
    </Dialog>
  );
}
