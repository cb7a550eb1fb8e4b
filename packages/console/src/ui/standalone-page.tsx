import { type ReactNode, useEffect } from 'react';
import icon from '../icon.svg';

/** A page without the navigation: sign-in, links, errors. */
export function StandalonePage({ title, children }: { title: string; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Signalbox`;
  }, [title]);
  return (
    <main className="alone">
      <div className="brand">
        <img src={icon} alt="" /> Signalbox
      </div>
      <h1>{title}</h1>
      {children}
    </main>
  );
}
