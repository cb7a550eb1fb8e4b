import type { Agent } from '@signalbox/client';
import { useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Time } from '../../ui/time.tsx';
import { changedFields, type Definition, definitionOf } from './definition.ts';
import { DefinitionDiff } from './diff-view.tsx';

/** Two people changed one version: what the other one changed, and what to do with one's own. */
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
    <Dialog title={`Version ${newest.version} was saved meanwhile`} wide onClose={onClose}>
      <p>
        You began with version {seen.version}; version {newest.version} was saved <Time at={newest.updatedAt} />. This
        is what changed:
      </p>
      <DefinitionDiff before={definitionOf(seen)} after={definitionOf(newest)} />
      <p>
        {both.length > 0 ? `You both changed: ${both.join(', ')}. ` : ''}If you save yours, a new version holds what is
        in your form, and nothing of the changes above. They stay among the versions.
      </p>
      {error !== undefined && <ErrorNotice error={error} />}
      <div className="foot">
        <Button onClick={onClose}>Back to my changes</Button>
        <Button onClick={onTake}>Drop mine, take version {newest.version}</Button>
        <Button look="danger" busy={busy} onClick={() => void save()}>
          Save mine over it
        </Button>
      </div>
    </Dialog>
  );
}
