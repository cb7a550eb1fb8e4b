import { Link, type LinkComponentProps } from '@tanstack/react-router';
import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react';

type Look = 'primary' | 'danger' | 'bare' | undefined;

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  small?: boolean;
  /** Shows a spinner and ignores clicks. */
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
  children: ReactNode;
}

export function Button({ look, small, busy, children, className, onClick, type = 'button', ...rest }: ButtonProps) {
  return (
    <button
      {...rest}
      type={type}
      className={classes(look, small, className)}
      aria-busy={busy || undefined}
      // Not `disabled`, which would drop the keyboard focus.
      aria-disabled={busy || rest.disabled || undefined}
      onClick={(event) => (busy ? event.preventDefault() : onClick?.(event))}
    >
      {busy && <span className="spinner" aria-hidden="true" />}
      {children}
    </button>
  );
}

/** A link to a page of the console that looks like a button. */
export function ButtonLink({
  look,
  small,
  ...rest
}: LinkComponentProps & { look?: Look; small?: boolean; children: ReactNode }) {
  return <Link {...rest} className={classes(look, small)} />;
}

function classes(look: Look, small?: boolean, more?: string): string {
  return ['button', look, small && 'small', more].filter(Boolean).join(' ');
}
