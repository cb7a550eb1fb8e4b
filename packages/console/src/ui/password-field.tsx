import { Eye, EyeOff } from 'lucide-react';
import { type InputHTMLAttributes, useState } from 'react';
import { Field } from './field.tsx';

/** A password, or another secret, that one may look at while typing. */
export function PasswordField({
  label,
  hint,
  error,
  ...input
}: { label: string; hint?: string; error?: string | undefined } & InputHTMLAttributes<HTMLInputElement>) {
  const [isShown, setShown] = useState(false);
  const Icon = isShown ? EyeOff : Eye;
  return (
    <Field label={label} hint={hint} error={error}>
      {(ties) => (
        <div className="password-field">
          <input spellCheck={false} {...input} {...ties} type={isShown ? 'text' : 'password'} className="input" />
          <button
            type="button"
            className="button bare icon"
            aria-pressed={isShown}
            aria-label="Show"
            aria-controls={ties.id}
            onClick={() => setShown(!isShown)}
          >
            <Icon aria-hidden="true" />
          </button>
        </div>
      )}
    </Field>
  );
}
