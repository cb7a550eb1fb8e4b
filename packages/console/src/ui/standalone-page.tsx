import { type ReactNode, useEffect } from 'react';

/** A page without the navigation: sign-in, links, errors. */
export function StandalonePage({
  title,
  foot,
  children,
}: {
  title: string;
  /** Below the card: what else one can do. */
  foot?: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Signalbox`;
  }, [title]);
  return (
    <main className="alone">
      <div className="brand">
        <Mark /> Signalbox
      </div>
      <div className="panel">
        <h1>{title}</h1>
        {children}
      </div>
      {foot && <div className="quiet small foot">{foot}</div>}
    </main>
  );
}

/** In the page itself, because without a network no file can be loaded. */
function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect className="back" width="32" height="32" rx="7" />
      <circle cx="10" cy="16" r="4" />
      <path d="M17 10h7M17 16h7M17 22h7" />
    </svg>
  );
}

/** Between a form and the other ways to do the same. */
export function Or() {
  return (
    <div className="or" aria-hidden="true">
      or
    </div>
  );
}
