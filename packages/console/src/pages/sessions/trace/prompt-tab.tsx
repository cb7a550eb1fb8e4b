import type { OperationDetails, SessionTurn } from '@signalbox/client';
import { counted } from '../../../lib/text-format.ts';
import { Json } from '../../../ui/copy.tsx';
import { LongText, PlainText } from '../../../ui/text.tsx';
import { Content, Part } from './step-parts.tsx';

/** What the model got: instructions, messages, tools and settings. */
export function PromptTab({ step: { prompt }, turn }: { step: OperationDetails; turn: SessionTurn | undefined }) {
  if (!prompt) return <p className="quiet">This call has no prompt that can be shown.</p>;
  const { instructions, messages, messagesLeftOut, tools, settings, maxOutputTokens, outputSchema } = prompt;
  const all = { ...settings, ...(maxOutputTokens !== null && { maxOutputTokens }) };
  return (
    <>
      <Part title="Instructions">
        {instructions === '' ? <p className="quiet">None</p> : <LongText text={instructions} />}
      </Part>
      <Part title={counted(messages.length, 'message')}>
        {messagesLeftOut > 0 && <p className="quiet">{counted(messagesLeftOut, 'older message')} left out.</p>}
        <ol className="step-messages">
          {messages.map(({ role, content }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the messages of one prompt never move
            <li key={index} data-role={role}>
              <span className="step-role">{role}</span>
              <Content parts={content} />
            </li>
          ))}
        </ol>
      </Part>
      {tools.length > 0 && (
        <Part title={counted(tools.length, 'tool')}>
          {tools.map(({ name, description, inputSchema }) => (
            <details className="fold" key={name}>
              <summary>
                <PlainText text={name} />
              </summary>
              <div className="within stack">
                <LongText text={description} />
                <Json value={inputSchema} />
              </div>
            </details>
          ))}
        </Part>
      )}
      <Missing title="left out of the turn" all={turn?.toolsLeftOut ?? []} of="tool" />
      <Missing title="not available" all={turn?.unavailableToolServers ?? []} of="tool server" />
      {Object.keys(all).length > 0 && (
        <Part title="Settings">
          <Json value={all} />
        </Part>
      )}
      {outputSchema && (
        <Part title="Output schema">
          <Json value={outputSchema} />
        </Part>
      )}
    </>
  );
}

function Missing({ title, of, all }: { title: string; of: string; all: readonly { name: string; reason: string }[] }) {
  if (all.length === 0) return null;
  return (
    <Part title={`${counted(all.length, of)} ${title}`}>
      <ul className="step-missing">
        {all.map(({ name, reason }) => (
          <li key={name}>
            <PlainText text={name} />: <PlainText text={reason} />
          </li>
        ))}
      </ul>
    </Part>
  );
}
