import type { OperationDetails, SentRequest } from '@signalbox/client';
import { CopyButton, Json } from '../../../ui/copy.tsx';
import { PlainText } from '../../../ui/text.tsx';
import { asCurl, asTypeScript } from './as-program.ts';
import { Body, Headers, Part } from './step-parts.tsx';

/** What was sent, with names in place of secrets, and as a program that sends it again. */
export function RequestTab({ step: { kind, request, input } }: { step: OperationDetails }) {
  return (
    <>
      {kind === 'tool' && (
        <Part title="Input">
          <Json value={input} />
        </Part>
      )}
      {request ? <Sent request={request} /> : kind !== 'tool' && <p className="quiet">No request was sent.</p>}
    </>
  );
}

function Sent({ request }: { request: SentRequest }) {
  const { method, url, headers, body } = request;
  return (
    <>
      <div className="step-actions">
        <CopyButton text={asCurl(request)} label="Copy as curl" />
        <CopyButton text={asTypeScript(request)} label="Copy as TypeScript" />
      </div>
      <Part title={method}>
        <code className="step-url">
          <PlainText text={url} />
        </code>
      </Part>
      <Part title="Headers">
        <Headers headers={headers} />
      </Part>
      {body !== null && (
        <Part title="Body">
          <Body text={body} />
        </Part>
      )}
    </>
  );
}
