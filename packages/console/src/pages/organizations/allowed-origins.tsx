// The web pages that may use session tokens, which programs create with API keys.
import { useState } from 'react';
import { useApiMutation } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { TextArea } from '../../ui/field.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { Setting } from '../../ui/setting.tsx';

export function AllowedOrigins({ allowedOrigins }: { allowedOrigins: readonly string[] }) {
  const [isEditing, setEditing] = useState(false);
  return (
    <Setting
      title="Allowed origins"
      about={
        <>
          Web pages that may use <a href="/docs#createSessionToken">session tokens</a>, which your server gives to the
          browsers of your end users.
        </>
      }
      action={<Button onClick={() => setEditing(true)}>Edit origins</Button>}
    >
      {allowedOrigins.length > 0 ? (
        <ul className="card origins mono">
          {allowedOrigins.map((origin) => (
            <li key={origin}>{origin}</li>
          ))}
        </ul>
      ) : (
        <p className="card quiet">None: no web page can use session tokens.</p>
      )}
      {isEditing && <Edit origins={allowedOrigins} onClose={() => setEditing(false)} />}
    </Setting>
  );
}

function Edit({ origins, onClose }: { origins: readonly string[]; onClose: () => void }) {
  const [text, setText] = useState(origins.join('\n'));
  const save = useApiMutation(
    (client, _: undefined) => client.organization.set({ allowedOrigins: text.split(/[\s,]+/).filter(Boolean) }),
    ['organization'],
  );
  return (
    <FormDialog
      title="Allowed origins"
      action="Save"
      beside={['allowedOrigins']}
      onClose={onClose}
      submit={() => save.mutateAsync(undefined)}
    >
      <TextArea
        label="Origins"
        hint="One per line, such as https://app.example.com, or https://*.example.com for all subdomains"
        mono
        rows={5}
        value={text}
        error={fieldError(save.error, 'allowedOrigins')}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
