import { type KeyboardEvent, useState } from 'react';

interface Props {
  isBusy: boolean;
  isEnded: boolean;
  onSend: (text: string) => Promise<boolean>;
  onStop: () => Promise<boolean>;
}

export function Composer({ isBusy, isEnded, onSend, onStop }: Props) {
  const [text, setText] = useState('');
  const send = () => {
    if (text.trim() === '') return;
    void onSend(text.trim());
    setText('');
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Enter also ends the input of a Japanese or Chinese word.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        aria-label="Message"
        placeholder={isEnded ? 'This chat has ended' : 'Write a message'}
        rows={1}
        value={text}
        disabled={isEnded}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {isBusy && text.trim() === '' ? (
        <button type="button" className="button" onClick={() => void onStop()}>
          Stop
        </button>
      ) : (
        <button type="submit" className="button primary" disabled={isEnded || text.trim() === ''}>
          Send
        </button>
      )}
    </form>
  );
}
