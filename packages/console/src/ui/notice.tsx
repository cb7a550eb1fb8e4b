import { SignalboxError } from '@signalbox/client';
import { type ReactNode, useState } from 'react';
import { counted } from '../lib/text-format.ts';
import { Button } from './button.tsx';

export function Notice({
  kind,
  title,
  children,
  live,
}: {
  kind?: 'good' | 'warn' | 'bad';
  title?: string;
  children?: ReactNode;
  /** Screen readers announce it when it appears. */
  live?: boolean;
}) {
  return (
    <div className={kind ? `notice ${kind}` : 'notice'} role={live ? 'status' : undefined}>
      {title && <strong>{title}</strong>}
      {children}
    </div>
  );
}

/** What went wrong, what to do, and the request id for the operator's log. */
export function ErrorNotice({
  error,
  retry,
  beside = [],
}: {
  error: unknown;
  /** The button shows that it is busy until the promise is settled. */
  retry?: () => Promise<unknown>;
  /** Fields (`errors[].path`) whose errors the form already shows. */
  beside?: readonly string[];
}) {
  const { title, detail, fields: all, requestId } = describe(error);
  const fields = all.filter(({ path }) => !beside.some((field) => isIn(path, field)));
  // Said already, where it can be corrected.
  if (all.length > 0 && fields.length === 0) return null;
  return (
    <div className="notice bad" role="alert">
      <strong>{title}</strong>
      {detail && <p>{detail}</p>}
      {fields.length > 0 && (
        <ul>
          {fields.map(({ path, message }) => (
            <li key={path + message}>
              {path && <strong>{nameOfPath(path)}</strong>} {message}
            </li>
          ))}
        </ul>
      )}
      {requestId && (
        <p className="small quiet">
          Request <code>{requestId}</code>
        </p>
      )}
      {retry && mayPass(error) && (
        <div>
          <Retry retry={retry} />
        </div>
      )}
    </div>
  );
}

function Retry({ retry }: { retry: () => Promise<unknown> }) {
  const [isBusy, setBusy] = useState(false);
  const [failures, setFailures] = useState(0);
  async function onClick() {
    setBusy(true);
    try {
      await retry();
    } catch {
      // The caller shows the new error.
    }
    setBusy(false);
    setFailures(failures + 1);
  }
  return (
    <>
      <Button small busy={isBusy} onClick={() => void onClick()}>
        Try again
      </Button>{' '}
      {!isBusy && failures > 0 && (
        <span className="small quiet">Still failing after {counted(failures, 'attempt')}.</span>
      )}
    </>
  );
}

/** An error in one text, for a toast: for an action in a row of a table, which has no room for a notice. */
export function errorText(error: unknown): string {
  const { title, detail, fields, requestId } = describe(error);
  return [title, detail, ...fields.map(({ message }) => message), requestId && `Request ${requestId}`]
    .filter(Boolean)
    .join(' ');
}

/** Whether a retry may succeed. */
function mayPass(error: unknown): boolean {
  if (!(error instanceof SignalboxError)) return true;
  const { status } = error;
  return status < 400 || status >= 500 || status === 408 || status === 409 || status === 429;
}

interface Described {
  title: string;
  detail: string;
  fields: readonly { path: string; message: string }[];
  requestId: string | null;
}

function describe(error: unknown): Described {
  if (!(error instanceof SignalboxError)) {
    return { title: 'Something went wrong in the console', detail: String(error), fields: [], requestId: null };
  }
  const { status, detail, requestId = null } = error;
  const fields = error.errors ?? [];
  // The browser's message about a failed connection is not useful.
  if (status === 0) return { title: unreachable, detail: '', fields, requestId };
  // The detail would say it again.
  if (error.code === 'not_found' && /^Not found\b/.test(detail))
    return { title: notFound, detail: '', fields, requestId };
  const title = titleOf(error.code);
  if (fields.length > 0) return { title: title ?? 'Check your input.', detail: '', fields, requestId };
  return title === undefined ? { title: detail, detail: '', fields, requestId } : { title, detail, fields, requestId };
}

/** Undefined if the service's own text says everything. */
function titleOf(code: string): string | undefined {
  switch (code) {
    case 'insufficient_permission':
      return 'Your role does not allow this. Ask an admin of the organization.';
    case 'not_found':
      return notFound;
    case 'rate_limited':
      return 'Too many requests. Wait a few seconds and try again.';
    case 'unavailable':
      return 'The service is busy or restarting. Try again in a few seconds.';
    case 'internal_error':
      return 'The service failed. The operator can find the cause in the log with the request ID below.';
    default:
      return undefined;
  }
}

const notFound = 'Not found. It may have been deleted, or its ID is incomplete.';
const unreachable = 'Can’t reach the service. Check your connection and try again.';

/** The service's error for a field of a form (`errors[].path`), or for something inside it. */
export function fieldError(error: unknown, field: string): string | undefined {
  if (!(error instanceof SignalboxError)) return undefined;
  const found = error.errors.find(({ path }) => isIn(path, field));
  if (!found) return undefined;
  const [, entry] = /^\[(\d+)\]$/.exec(found.path.slice(field.length)) ?? [];
  return entry === undefined ? found.message : `Entry ${Number(entry) + 1} ${found.message}`;
}

/** `tools[0].inputSchema` as people read it: “Tool 1 › input schema”. The form of a draft is that of an agent. */
export function nameOfPath(path: string): string {
  const name = path
    .replace(/^draft\.definition\./, '')
    .replaceAll(/s?\[(\d+)\]/g, (_, index: string) => ` ${Number(index) + 1}`)
    .replaceAll('.', ' › ')
    .replaceAll(/(?<=\p{Ll})\p{Lu}(?=\p{Ll})/gu, (letter) => ` ${letter.toLowerCase()}`)
    .replaceAll(/\b(?:url|usd|id|ip|json|mcp)\b/gi, (word) => word.toUpperCase());
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function isIn(path: string, field: string): boolean {
  return path === field || (path.startsWith(field) && /^[.[]/.test(path.slice(field.length)));
}
