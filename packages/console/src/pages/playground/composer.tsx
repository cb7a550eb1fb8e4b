// The input that all columns share: messages in their order, the environment, and the buttons that run and stop.
import { Play, Plus, Square, X } from 'lucide-react';
import { useEnvironmentNames } from '../../data/environment-names.ts';
import { Button } from '../../ui/button.tsx';
import { emptyMessage, type Message, type Playground } from './state.ts';

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

export function Composer({
  playground,
  environment,
  isRunning,
  isStarting,
  continues,
  mayRun,
  onChange,
  onRun,
  onContinue,
  onStop,
}: {
  playground: Playground;
  environment: string;
  isRunning: boolean;
  isStarting: boolean;
  /** Whether the last messages can follow what the columns have. */
  continues: boolean;
  mayRun: boolean;
  onChange: (change: Partial<Playground>) => void;
  onRun: () => void;
  onContinue: () => void;
  onStop: () => void;
}) {
  const { messages, origin } = playground;
  const environments = useEnvironmentNames() ?? [];
  const setMessage = (index: number, message: Message | null) =>
    onChange({ messages: messages.flatMap((one, at) => (at !== index ? [one] : message ? [message] : [])) });
  const several = messages.length > 1;
  return (
    <section className="playground-composer card" aria-label="Input">
      {messages.map((message, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a message is its position
        <div className="playground-message" key={index}>
          <textarea
            className="input"
            dir="auto"
            rows={1}
            aria-label={several ? `Message ${index + 1}` : 'Message'}
            placeholder="What a user would write"
            value={message.text}
            onChange={({ currentTarget: { value } }) => setMessage(index, { ...message, text: value })}
          />
          {message.files.map(({ fileId, filename }) => (
            <span className="filter-chip" key={fileId}>
              {filename}
            </span>
          ))}
          {several && (
            <Button
              small
              look="bare"
              className="icon"
              aria-label={`Remove message ${index + 1}`}
              onClick={() => setMessage(index, null)}
            >
              <X aria-hidden="true" />
            </Button>
          )}
        </div>
      ))}
      <div className="row apart playground-controls">
        <div className="row">
          <Button
            small
            look="bare"
            aria-label="Add message"
            onClick={() => onChange({ messages: [...messages, emptyMessage] })}
          >
            <Plus aria-hidden="true" /> <span className="label">Add message</span>
          </Button>
          <label className="row small">
            <span className="quiet label">Environment</span>
            <select
              className="input"
              aria-label="Environment"
              value={environment}
              disabled={origin !== null}
              onChange={({ currentTarget: { value } }) => onChange({ environment: value })}
            >
              {[...new Set([...environments, environment])].filter(Boolean).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        </div>
        <div className="row">
          {isRunning && (
            <Button onClick={onStop}>
              <Square aria-hidden="true" /> Stop
            </Button>
          )}
          {continues && (
            <Button busy={isStarting} onClick={onContinue}>
              Send {messages.length > 1 ? 'the last message' : 'message'}
            </Button>
          )}
          <Button look="primary" busy={isStarting} disabled={!mayRun} onClick={onRun}>
            <Play aria-hidden="true" /> Run all <kbd>{isApple ? '⌘' : 'Ctrl'} ⏎</kbd>
          </Button>
        </div>
      </div>
    </section>
  );
}
