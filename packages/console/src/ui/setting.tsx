import { type ReactNode, useId } from 'react';

/** A group of settings: what it is at the side, and the settings. Pages with several of them are a column of these. */
export function Setting({
  title,
  about,
  action,
  children,
}: {
  title: string;
  about?: ReactNode;
  /** A button under the text. */
  action?: ReactNode;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <section className="setting" aria-labelledby={id}>
      <div className="stack tight">
        <h2 id={id}>{title}</h2>
        {about && <p className="quiet">{about}</p>}
        {action && <div className="row action">{action}</div>}
      </div>
      <div className="stack">{children}</div>
    </section>
  );
}
