import type { Approval } from '@signalbox/client';
import { useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { LongText, PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { approversText, progressText } from './approvers-text.ts';
import { InputView } from './input-view.tsx';

type Made = Approval['decisions'][number];

/**
 * Who may decide, and who has, unless anyone may and one is enough. `onJoin`: the user wants to approve the edited input that another
 * approver has approved.
 */
export function ApproversInfo({ approval, onJoin }: { approval: Approval; onJoin?: (input: unknown) => void }) {
  const { user } = useOrganization();
  const { by, decisions, progress, status } = approval;
  if (!by) return null;
  const missing = status === 'pending' ? progressText(approval) : undefined;
  return (
    <div className="stack tight small">
      <p className="quiet">{approversText(by)}</p>
      {missing !== undefined && <p role="status">{missing}</p>}
      {progress.required > 1 && decisions.length > 0 && (
        <ul className="stack tight">
          {decisions.map((made) => (
            <li key={made.actor.id}>
              <PlainText text={made.actor.id === user.userId ? 'You' : actorName(made)} /> {made.decision},{' '}
              <Time at={made.at} />
              {made.reason !== null && (
                <>
                  : <LongText text={made.reason} />
                </>
              )}
              {made.input !== undefined && (
                <div className="stack tight">
                  <p>With an edited input:</p>
                  <InputView value={made.input} before={approval.input} />
                  {onJoin && made.actor.id !== user.userId && (
                    <div className="row">
                      <Button small onClick={() => onJoin(made.input)}>
                        Approve this input
                      </Button>
                    </div>
                  )}
                </div>
              )}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function actorName({ actor }: Made): string {
  const name = actor.type === 'api_key' ? `${actor.name} (API key)` : actor.name;
  return actor.onBehalfOf ? `${name}, on behalf of ${actor.onBehalfOf},` : name;
}
