// The web pages that may use session tokens, which programs create with API keys.
import { useState } from 'react';
import { useApiMutation, useApiQuery } from '../../organization.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { TextArea } from '../../ui/field.tsx';
import { fieldError } from '../../ui/notice.tsx';

export function AllowedOrigins() {
  const { data } = useApiQuery(['organization'], (client) => client.organization.get());
  const [isEditing, setEditing] = useState(false);
  if (!data) return null;
  const { allowedOrigins } = data;
  return (
    <section className="stack" aria-labelledby="allowed-origins">
      <h2 id="allowed-origins">Allowed origins</h2>
      <p>
        Pages of these origins may use session tokens, which your server creates with an API key and gives to the
        browsers of your end users.
      </p>
      {allowedOrigins.length > 0 ? (
        <ul className="mono">
          {allowedOrigins.map((origin) => (
            <li key={origin}>{origin}</li>
          ))}
        </ul>
      ) : (
        <p className="quiet">None: no web page can use session tokens.</p>
      )}
      <div>
        <Button onClick={() => setEditing(true)}>Edit origins</Button>
      </div>
      {isEditing && <Edit origins={allowedOrigins} onClose={() => setEditing(false)} />}
    </section>
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
