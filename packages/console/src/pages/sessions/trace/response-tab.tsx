import type { OperationDetails } from '@signalbox/client';
import { sizeText } from '../../../lib/text-format.ts';
import { LongText } from '../../../ui/text.tsx';
import { Body, Content, Headers, Part, Value } from './step-parts.tsx';

/** What came back: the model's response, or that of the tool's server. */
export function ResponseTab({ step }: { step: OperationDetails }) {
  const { kind, response, received, status, output, compaction, error } = step;
  if (compaction)
    return (
      <Part title="Summary">
        <LongText text={compaction.summary} />
      </Part>
    );
  if (kind !== 'tool') {
    if (!response) return <p className="quiet">No response yet, or none that was stored.</p>;
    return (
      <>
        {response.reasoning && (
          <Part title="Reasoning">
            <LongText text={response.reasoning} />
          </Part>
        )}
        <Part title="Response">
          {response.content.length === 0 ? <p className="quiet">Empty</p> : <Content parts={response.content} />}
        </Part>
        {response.stopReason && (
          <Part title="Stop reason">
            <code>{response.stopReason}</code>
          </Part>
        )}
      </>
    );
  }
  return (
    <>
      <Part title="Result for the model">
        {status === 'succeeded' ? (
          <Value value={output} />
        ) : error ? (
          <LongText text={error} />
        ) : (
          <p className="quiet">None yet</p>
        )}
      </Part>
      {received && (
        <>
          <Part title={`HTTP ${received.status}, ${sizeText(received.bytes)}`}>
            <Headers headers={received.headers} />
          </Part>
          {received.body !== null && (
            <Part title="Body">
              <Body text={received.body} />
            </Part>
          )}
        </>
      )}
    </>
  );
}
