import { type Approval, NotFoundError } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { ChevronDown, ChevronRight } from 'lucide-react';
import { type MouseEvent, useId, useRef, useState } from 'react';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { toolTitle } from '../../lib/text-format.ts';
import { Badge, Status } from '../../ui/badge.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time, useNow } from '../../ui/time.tsx';
import { AgentName, ApprovalSource, isSoon } from './approval-source.tsx';
import { CallOutcome } from './call-outcome.tsx';
import { ContextView, lastWords } from './context-view.tsx';
import { Decision } from './decision.tsx';
import { InputLine } from './input-line.tsx';
import { InputView } from './input-view.tsx';

/** One approval: a line, and its details on demand. It keeps its place when anyone decides it, and then shows the outcome. */
export function InboxRow({
  approval: last,
  isPending,
  decidedAs,
  refused,
  canDecide,
  isSelected,
  isGrouped,
  onSelect,
}: {
  approval: Approval;
  isPending: boolean;
  /** By a decision on several. */
  decidedAs: Approval['status'] | undefined;
  /** Why a decision on several did not count for this one. */
  refused: string | undefined;
  canDecide: boolean;
  isSelected: boolean;
  /** The heading of its group names the tool and the agent. */
  isGrouped: boolean;
  onSelect: (isSelected: boolean) => void;
}) {
  const { organizationId } = useOrganization();
  const [isOpen, setOpen] = useState(false);
  const { operationId } = last;
  const article = useRef<HTMLElement>(null);
  const id = useId();
  // What a decision on several did to a line is known. Reading each of a hundred again would be a hundred requests.
  const { data, error } = useApiQuery(['approvals', operationId], (client) => client.approvals.get(operationId), {
    enabled: !isPending && (isOpen || decidedAs === undefined),
  });
  const approval = data && (!isPending || data.status !== 'pending') ? { ...last, ...data } : last;
  const status = approval.status === 'pending' ? (decidedAs ?? 'pending') : approval.status;
  const isGone = error instanceof NotFoundError;
  const words = lastWords(last);

  /** A click on the line, but not on a control in it. */
  function toggle(event: MouseEvent) {
    if ((event.target as Element).closest('a, button, input, label, form')) return;
    setOpen(!isOpen);
  }

  return (
    <article
      className="approval"
      data-item
      data-open={isOpen}
      data-selected={isSelected}
      data-decided={status !== 'pending'}
      tabIndex={-1}
      ref={article}
      aria-labelledby={id}
    >
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a larger target for the button in it */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the button in it is for the keyboard */}
      <div className="line" onClick={toggle}>
        <label className="pick">
          <input
            type="checkbox"
            aria-label={`Select ${toolTitle(last.name)}`}
            aria-keyshortcuts="X"
            disabled={!canDecide}
            checked={isSelected}
            onChange={(event) => onSelect(event.currentTarget.checked)}
          />
        </label>
        <button
          type="button"
          className="fold"
          aria-expanded={isOpen}
          aria-label="Details"
          aria-keyshortcuts="O"
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? <ChevronDown aria-hidden="true" /> : <ChevronRight aria-hidden="true" />}
        </button>
        <div className="what">
          {isGrouped ? (
            <h3 id={id} className="visually-hidden">
              {toolTitle(last.name)}
            </h3>
          ) : (
            <h2 id={id}>
              <Link to="/$organizationId/approvals/$operationId" params={{ organizationId, operationId }}>
                <PlainText text={toolTitle(last.name)} />
              </Link>
            </h2>
          )}
          <span className="input">
            <InputLine input={last.input} />
          </span>
          {words !== undefined && (
            <span className="quiet said" dir="auto">
              <PlainText text={words.replaceAll(/\s+/g, ' ')} />
            </span>
          )}
        </div>
        <div className="meta quiet small">
          {!isGrouped && (
            <span className="agent">
              <AgentName agentId={last.agentId} />
            </span>
          )}
          <span className="environment">{last.environment}</span>
          <span className="until">
            <Until approval={approval} isPending={status === 'pending'} />
          </span>
        </div>
      </div>
      {isGone ? (
        <p className="quiet">This approval no longer exists because its session was deleted.</p>
      ) : isOpen ? (
        <div className="details">
          <div className="stack">
            <InputView value={approval.input} />
            <ApprovalSource approval={approval} isLinked />
          </div>
          <ContextView approval={last} />
        </div>
      ) : null}
      {refused !== undefined && status === 'pending' && (
        <p className="refused small" role="alert">
          {refused}
        </p>
      )}
      {!isGone &&
        (decidedAs !== undefined && approval.status === 'pending' ? (
          <div className="outcome">
            <Status value={decidedAs} /> by you
          </div>
        ) : (
          <Decision
            approval={approval}
            isLine={!isOpen}
            onBegin={() => setOpen(true)}
            onDecided={() => requestAnimationFrame(() => article.current?.focus({ preventScroll: true }))}
          />
        ))}
      {approval.status !== 'pending' && !isGone && (isOpen || decidedAs === undefined) && (
        <CallOutcome approval={approval} />
      )}
    </article>
  );
}

/** Since when it waits, or how long it still can. */
function Until({ approval: { requestedAt, expiresAt }, isPending }: { approval: Approval; isPending: boolean }) {
  const now = useNow();
  if (isPending && expiresAt !== null && isSoon(expiresAt, now)) {
    return (
      <Badge tone="warn">
        expires <Time at={expiresAt} />
      </Badge>
    );
  }
  return <Time at={requestedAt} />;
}
