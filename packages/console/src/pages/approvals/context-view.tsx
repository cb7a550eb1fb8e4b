import type { Approval } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useOrganization } from '../../data/organization.tsx';
import { LongText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';

/** The last messages before the call: why the agent wants it. */
export function ContextView({ approval: { context = [], sessionId } }: { approval: Approval }) {
  const { organizationId } = useOrganization();
  if (context.length === 0) return null;
  return (
    <section className="context" aria-label="Last messages">
      <ol>
        {context.map(({ role, text, isCut, createdAt }) => (
          <li key={`${createdAt} ${role} ${text}`}>
            <span className="quiet small">
              {role === 'user' ? 'User' : 'Agent'} · <Time at={createdAt} />
            </span>
            <div>
              <LongText text={isCut ? `${text}…` : text} />
            </div>
          </li>
        ))}
      </ol>
      <Link className="small" to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId }}>
        Open the conversation
      </Link>
    </section>
  );
}

/** The last words of the user in one line, for a row. */
export function lastWords({ context = [] }: Approval): string | undefined {
  return context.findLast(({ role, text }) => role === 'user' && text !== '')?.text;
}
