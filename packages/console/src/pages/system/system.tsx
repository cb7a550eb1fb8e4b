// Every part of ui/ in every state, for people who build pages, and for the test that compares pictures of it (test/system.test.ts).
import { lazy, type ReactNode, Suspense, useEffect } from 'react';
import { Charts } from './charts.tsx';
import { Controls } from './controls.tsx';
import { Data } from './data.tsx';
import { Feedback } from './feedback.tsx';
import { Foundations } from './foundations.tsx';
import './system.css';

// Markdown and the editor are more than a page may load at once.
const Content = lazy(async () => ({ default: (await import('./content.tsx')).Content }));

export function SystemPage() {
  useEffect(() => {
    document.title = 'Parts · Signalbox';
  }, []);
  return (
    <main className="page system" id="main">
      <header>
        <div>
          <h1>Parts of the console</h1>
          <p className="quiet">Every part in every state. Pages are made of these, and of the tokens that they use.</p>
        </div>
      </header>
      <Foundations />
      <Controls />
      <Data />
      <Charts />
      <Suspense>
        <Content />
      </Suspense>
      <Feedback />
    </main>
  );
}

/** A part with its name. The test takes one picture of each. */
export function Specimen({ name, children }: { name: string; children: ReactNode }) {
  return (
    <section className="specimen" data-specimen={name.toLowerCase().replaceAll(/\W+/g, '-')} aria-label={name}>
      <h2>{name}</h2>
      {children}
    </section>
  );
}
