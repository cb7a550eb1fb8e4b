// A file in one line, with its download, in a session and in a shared conversation.
import { type FilePart, SignalboxError } from '@signalbox/client';
import { Download } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { save } from '../../lib/save-file.ts';
import { sizeText } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { PlainText } from '../../ui/text.tsx';

export function FileCaption({
  file: { fileId, filename, mediaType, bytes },
  read,
  children,
}: {
  file: FilePart;
  read: () => Promise<BlobPart>;
  children?: ReactNode;
}) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const name = filename ?? 'File without a name';

  async function download() {
    setBusy(true);
    setError(undefined);
    try {
      save(new Blob([await read()]), filename ?? fileId);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  }

  return (
    <>
      <figcaption className="small">
        <span className="name" title={name}>
          <PlainText text={name} />
        </span>
        <span className="quiet">
          {mediaType}, {sizeText(bytes)}
        </span>
        {children}
        {isGone(error) ? (
          <span className="quiet">This file was deleted.</span>
        ) : (
          <Button
            small
            look="bare"
            className="icon"
            aria-label="Download"
            title="Download"
            busy={isBusy}
            onClick={download}
          >
            <Download aria-hidden="true" />
          </Button>
        )}
      </figcaption>
      {error !== undefined && !isGone(error) && <ErrorNotice error={error} />}
    </>
  );
}

export function isGone(error: unknown): boolean {
  return error instanceof SignalboxError && error.status === 404;
}
