import { useQuery } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { accountQuery, becomeAccount, consoleCall, signOut } from '../../data/account.ts';
import { Button } from '../../ui/button.tsx';
import { TextField, textsOf } from '../../ui/field.tsx';
import { useForm } from '../../ui/form.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { StandalonePage } from '../../ui/standalone-page.tsx';
import { useEnter } from '../sign-in/enter.ts';

export function NewOrganizationPage() {
  const enter = useEnter();
  const { history } = useRouter();
  const { data: account } = useQuery(accountQuery);
  const { props, busy, error, setError, errorOf } = useForm(async (form) => {
    const before = new Set(account?.organizations.map(({ organizationId }) => organizationId));
    const next = await consoleCall('POST /organizations', textsOf(form, ['name']));
    becomeAccount(next);
    const created = next.organizations.find(({ organizationId }) => !before.has(organizationId));
    enter(created && `/${created.organizationId}/start`);
  });
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
      <p className="quiet">
        It has its own agents, sessions, keys and people. You’ll be its owner, and switch between organizations at the
        top left.
      </p>
      <form className="stack" {...props}>
        <TextField label="Name" name="name" autoComplete="organization" autoFocus error={errorOf('name')} />
        {error !== undefined && <ErrorNotice error={error} beside={['name']} />}
        <Button type="submit" look="primary" busy={busy}>
          Create organization
        </Button>
        <Button onClick={() => history.back()}>Cancel</Button>
      </form>
    </StandalonePage>
  );
}
