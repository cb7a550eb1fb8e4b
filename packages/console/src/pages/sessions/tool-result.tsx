import { type FormEvent, useState } from 'react';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { toolTitle } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { Choices, TextArea } from '../../ui/field.tsx';
import { ErrorNotice, fieldError } from '../../ui/notice.tsx';
import { useToast } from '../../ui/toast.tsx';

type As = 'text' | 'json' | 'error';

/** A call of a `client` tool waits for its result: the user enters it instead of the program. */
export function ToolResultForm({
  sessionId,
  toolCallId,
  tool,
}: {
  sessionId: string;
  toolCallId: string;
  tool: string;
}) {
  const { may } = useOrganization();
  const toast = useToast();
  const [isOpen, setOpen] = useState(false);
  const [as, setAs] = useState<As>('text');
  const [text, setText] = useState('');
  const [said, setSaid] = useState<string>();
  const send = useApiMutation(
    (client, result: { output: unknown } | { error: string }) =>
      client.sessions.sendToolResult(sessionId, { toolCallId, ...result }),
    ['sessions'],
  );
  if (!may('write'))
    return <p className="quiet small">Your program sends the result. You need the member role to enter it here.</p>;
  if (!isOpen) {
    return (
      <div className="row">
        <Button small onClick={() => setOpen(true)}>
          Enter result
        </Button>
        <span className="quiet small">if your program doesn’t send it</span>
      </div>
    );
  }

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (send.isPending) return;
    setSaid(undefined);
    if (as === 'error' && text.trim() === '') return setSaid('Describe what went wrong.');
    const read = as === 'json' ? readJson(text) : undefined;
    if (read && 'problem' in read) return setSaid(read.problem);
    try {
      await send.mutateAsync(as === 'error' ? { error: text } : { output: read ? read.value : text });
      toast('Result sent');
    } catch {
      // Shown below.
    }
  }

  return (
    <form className="stack tight" onSubmit={submit} noValidate aria-label={`Result of ${toolTitle(tool)}`}>
      <Choices
        label="Result type"
        value={as}
        onChange={setAs}
        options={[
          { value: 'text', label: 'text' },
          { value: 'json', label: 'JSON' },
          { value: 'error', label: 'an error', about: 'The model sees it.' },
        ]}
      />
      <TextArea
        label={as === 'error' ? 'Error message' : 'Output'}
        mono={as === 'json'}
        rows={3}
        autoFocus
        value={text}
        error={said ?? fieldError(send.error, 'output') ?? fieldError(send.error, 'error')}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {send.error && <ErrorNotice error={send.error} />}
      <div className="row">
        <Button type="submit" look="primary" busy={send.isPending}>
          Enter result
        </Button>
        <Button onClick={() => setOpen(false)}>Cancel</Button>
      </div>
    </form>
  );
}

function readJson(text: string): { value: unknown } | { problem: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: `This is not valid JSON: ${(error as Error).message}` };
  }
}
