// Two panes next to each other on a wide screen. The first scrolls with the page; the second stays and scrolls by itself.
import { type CSSProperties, type KeyboardEvent, type PointerEvent, type ReactNode, useRef, useState } from 'react';

const DEFAULT_PX = 760;
const MIN_PX = 420;
const STEP_PX = 24;

export function SplitPanes({
  name,
  label,
  second,
  children,
}: {
  /** For the browser's storage. */
  name: string;
  /** The label of the separator, for screen readers. */
  label: string;
  /** Without it there is one pane. */
  second: ReactNode | undefined;
  children: ReactNode;
}) {
  const key = `signalbox.split.${name}`;
  const [width, setWidth] = useState(() => Number(localStorage.getItem(key)) || DEFAULT_PX);
  const box = useRef<HTMLDivElement>(null);

  function resize(px: number) {
    const most = box.current!.clientWidth - MIN_PX;
    const next = Math.round(Math.max(MIN_PX, Math.min(px, most)));
    setWidth(next);
    localStorage.setItem(key, String(next));
  }
  function onKeyDown(event: KeyboardEvent) {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    event.preventDefault();
    resize(width + (event.key === 'ArrowLeft' ? -STEP_PX : STEP_PX));
  }
  function onPointerDown(event: PointerEvent<HTMLElement>) {
    event.currentTarget.setPointerCapture(event.pointerId);
  }
  function onPointerMove(event: PointerEvent<HTMLElement>) {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    resize(event.clientX - box.current!.getBoundingClientRect().left);
  }

  return (
    <div
      className="split-panes"
      data-split={second !== undefined || undefined}
      ref={box}
      style={{ '--first-pane': `${width}px` } as CSSProperties}
    >
      <div className="first-pane">{children}</div>
      {second !== undefined && (
        <>
          {/* biome-ignore lint/a11y/useSemanticElements: an <hr> can't be moved */}
          <div
            className="separator"
            role="separator"
            aria-orientation="vertical"
            aria-label={label}
            aria-valuenow={width}
            aria-valuemin={MIN_PX}
            tabIndex={0}
            onKeyDown={onKeyDown}
            onPointerDown={onPointerDown}
            onPointerMove={onPointerMove}
            onDoubleClick={() => resize(DEFAULT_PX)}
          />
          <div className="second-pane">{second}</div>
        </>
      )}
    </div>
  );
}
