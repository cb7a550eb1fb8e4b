// A file in a conversation. Images of four raster formats are shown, from memory and in an <img>, which runs nothing; of a PDF, a page at
// a time is drawn (pdf-view.tsx) if the user asks for it. Everything else is a download.
import { type FilePart, type Signalbox, SignalboxError } from '@signalbox/client';
import { lazy, Suspense, useEffect, useState } from 'react';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { sizeText } from '../../text-format.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { PlainText } from '../../ui/text.tsx';

/** Loaded when a PDF is shown: it is larger than the rest of the console. */
const PdfView = lazy(() => import('./pdf-view.tsx'));

const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Larger images are shown on demand. */
const MAX_SHOWN_BYTES = 4 * 1024 * 1024;

export function FileView({ file }: { file: FilePart }) {
  const { fileId, mediaType, bytes } = file;
  const isImage = IMAGE_TYPES.includes(mediaType);
  const isPdf = mediaType === 'application/pdf';
  const [isShown, setShown] = useState(isImage && bytes <= MAX_SHOWN_BYTES);
  const name = file.filename ?? 'File without a name';
  return (
    <figure className="file">
      {isShown &&
        (isPdf ? <Pdf fileId={fileId} name={name} /> : <Image fileId={fileId} mediaType={mediaType} name={name} />)}
      <figcaption className="row small">
        <span>
          <PlainText text={name} />
        </span>
        <span className="quiet">
          {mediaType}, {sizeText(bytes)}
        </span>
        {(isImage || isPdf) && !isShown && (
          <Button small onClick={() => setShown(true)}>
            {isPdf ? 'Show pages' : 'Show image'}
          </Button>
        )}
        <Download file={file} />
      </figcaption>
    </figure>
  );
}

function Image({ fileId, mediaType, name }: { fileId: string; mediaType: string; name: string }) {
  const { data, error } = useApiQuery(['file-content', fileId], (client) => readContent(client, fileId));
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    if (!data) return;
    // The type that the service detected, and one of the four above.
    const made = URL.createObjectURL(new Blob([data], { type: mediaType }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [data, mediaType]);
  if (isGone(error)) return <p className="quiet small">This file was deleted.</p>;
  if (error) return <ErrorNotice error={error} />;
  if (!url) return <div className="image-place" aria-busy="true" />;
  return <img src={url} alt={name} />;
}

function Pdf({ fileId, name }: { fileId: string; name: string }) {
  const { data, error } = useApiQuery(['file-content', fileId], (client) => readContent(client, fileId));
  if (isGone(error)) return <p className="quiet small">This file was deleted.</p>;
  if (error) return <ErrorNotice error={error} />;
  const place = <div className="image-place" aria-busy="true" />;
  if (!data) return place;
  return (
    <Suspense fallback={place}>
      <PdfView data={data} name={name} />
    </Suspense>
  );
}

function Download({ file: { fileId, filename } }: { file: FilePart }) {
  const { client } = useOrganization();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();

  async function save() {
    setBusy(true);
    setError(undefined);
    try {
      const url = URL.createObjectURL(new Blob([await readContent(client, fileId)]));
      const link = document.createElement('a');
      link.href = url;
      link.download = filename ?? fileId;
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  }

  if (isGone(error)) return <span className="quiet">This file was deleted.</span>;
  return (
    <>
      <Button small look="bare" busy={isBusy} onClick={save}>
        Download
      </Button>
      {error !== undefined && <ErrorNotice error={error} />}
    </>
  );
}

async function readContent(client: Signalbox, fileId: string): Promise<ArrayBuffer> {
  return await new Response(await client.files.content(fileId)).arrayBuffer();
}

function isGone(error: unknown): boolean {
  return error instanceof SignalboxError && error.status === 404;
}
