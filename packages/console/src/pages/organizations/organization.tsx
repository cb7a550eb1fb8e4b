// The settings of the organization itself.
import { Link } from '@tanstack/react-router';
import { useApiMutation, useApiQuery, useOrganization } from '../../data/organization.tsx';
import { AdminsOnly } from '../../ui/admins-only.tsx';
import { Button } from '../../ui/button.tsx';
import { TextField, textsOf } from '../../ui/field.tsx';
import { useForm } from '../../ui/form.ts';
import { IdChip } from '../../ui/id-chip.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { Setting } from '../../ui/setting.tsx';
import { Time } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { AllowedOrigins } from './allowed-origins.tsx';
import './organization.css';

export function OrganizationPage() {
  return (
    <AdminsOnly title="Organization" action="change the organization">
      <Settings />
    </AdminsOnly>
  );
}

function Settings() {
  const query = useApiQuery(['organization'], (client) => client.organization.get());
  return (
    <Page title="Organization" about="Name and settings for all environments.">
      <Await query={query}>
        {({ organizationId, name, allowedOrigins, createdAt }) => (
          <>
            <Setting title="Name" about="Members see it when they sign in and switch organizations.">
              <Rename key={name} name={name} />
            </Setting>
            <AllowedOrigins allowedOrigins={allowedOrigins} />
            <Setting title="About">
              <dl className="card facts">
                <dt>ID</dt>
                <dd>
                  <IdChip value={organizationId} />
                </dd>
                <dt>Created</dt>
                <dd>
                  <Time at={createdAt} />
                </dd>
                <dt>Elsewhere</dt>
                <dd className="row">
                  <Link to="/$organizationId/people" params={{ organizationId }}>
                    People
                  </Link>
                  <Link to="/$organizationId/keys" params={{ organizationId }}>
                    API keys
                  </Link>
                  <Link to="/$organizationId/environments" params={{ organizationId }}>
                    Retention of each environment
                  </Link>
                </dd>
              </dl>
            </Setting>
          </>
        )}
      </Await>
    </Page>
  );
}

function Rename({ name }: { name: string }) {
  const { refreshAccount } = useOrganization();
  const toast = useToast();
  const rename = useApiMutation((client, next: string) => client.organization.update({ name: next }), ['organization']);
  const { props, busy, error, errorOf } = useForm(async (form) => {
    await rename.mutateAsync(textsOf(form, ['name']).name);
    await refreshAccount();
    toast('Organization renamed');
  });
  return (
    <form className="card" {...props}>
      <TextField
        label="Organization name"
        name="name"
        autoComplete="organization"
        defaultValue={name}
        error={errorOf('name')}
      />
      {error !== undefined && <ErrorNotice error={error} beside={['name']} />}
      <div>
        <Button type="submit" busy={busy}>
          Rename
        </Button>
      </div>
    </form>
  );
}
