import type { Session } from '@signalbox/client';
import { modelKeyErrors } from '@signalbox/contract';
import { Link } from '@tanstack/react-router';
import { useOrganization } from '../../data/organization.tsx';
import { Notice } from '../../ui/notice.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Retry } from './actions.tsx';
import type { Entry } from './conversation.ts';
import { isEnded } from './use-session.ts';

/** Why the last turn failed and, if the reason is a model's key, where to set it. The turn can be retried. */
export function SessionErrorNotice({ session, entries }: { session: Session; entries: readonly Entry[] }) {
  const { error, environment } = session;
  if (!error) return null;
  const isAboutKey = modelKeyErrors.some((code) => code === error.code);
  return (
    <Notice kind="bad" title={isEnded(session) ? 'Session failed' : 'Turn failed'}>
      <p>
        <PlainText text={error.message} /> <code className="small">{error.code}</code>
      </p>
      {isAboutKey && <ModelKeyHelp environment={environment} />}
      <Retry session={session} entries={entries} />
    </Notice>
  );
}

function ModelKeyHelp({ environment }: { environment: string }) {
  const { organizationId, may } = useOrganization();
  if (!may('admin')) return <p>An admin sets it under Environments.</p>;
  return (
    <p>
      <Link to="/$organizationId/environments/$name" params={{ organizationId, name: environment }}>
        Set the key in {environment}
      </Link>
    </p>
  );
}
