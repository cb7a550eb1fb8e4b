import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { accountQuery, becomeAccount, consoleCall, signOut } from '../../account.ts';
import { Button } from '../../ui/button.tsx';
import { TextField, textsOf } from '../../ui/field.tsx';
import { ErrorNotice, fieldError } from '../../ui/notice.tsx';
import { StandalonePage } from '../../ui/standalone-page.tsx';
import { useEnter } from '../sign-in/enter.ts';

export function NewOrganizationPage() {
  const enter = useEnter();
  const { data: account } = useQuery(accountQuery);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const body = textsOf(event.currentTarget, ['name']);
    setBusy(true);
    setError(undefined);
    try {
      const before = new Set(account?.organizations.map(({ organizationId }) => organizationId));
      const next = await consoleCall('POST /organizations', body);
      becomeAccount(next);
      const created = next.organizations.find(({ organizationId }) => !before.has(organizationId));
      enter(created && `/${created.organizationId}`);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  }
  if (account?.organizations.length === 0) {
    return (
      <StandalonePage title="You are not in an organization">
        <p>Ask an admin to invite you, and open the invitation link in this browser.</p>
        <div>
          <Button onClick={() => void signOut().catch(setError)}>Sign out</Button>
        </div>
        {error !== undefined && <ErrorNotice error={error} />}
      </StandalonePage>
    );
  }
  return (
    <StandalonePage title="New organization">
      <form className="stack" onSubmit={submit} noValidate>
        <TextField label="Name" name="name" autoComplete="organization" required error={fieldError(error, 'name')} />
        {error !== undefined && <ErrorNotice error={error} beside={['name']} />}
        <Button type="submit" look="primary" busy={busy}>
          Create organization
        </Button>
      </form>
    </StandalonePage>
  );
}
