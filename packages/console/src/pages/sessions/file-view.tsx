// A file in a conversation. Images of four raster formats are shown, from memory and in an <img>, which runs nothing; of a PDF, a page at
// a time is drawn (pdf-view.tsx) if the user asks for it. Everything else is a download.
import type { FilePart, Signalbox } from '@signalbox/client';
import { lazy, Suspense, useEffect, useState } from 'react';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { FileCaption, isGone } from './file-caption.tsx';

/** Loaded when a PDF is shown: it is larger than the rest of the console. */
const PdfView = lazy(() => import('./pdf-view.tsx'));

const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Larger images are shown on demand. */
const MAX_SHOWN_BYTES = 4 * 1024 * 1024;

export function FileView({ file }: { file: FilePart }) {
  const { client } = useOrganization();
  const { fileId, mediaType, bytes } = file;
  const isImage = IMAGE_TYPES.includes(mediaType);
  const isPdf = mediaType === 'application/pdf';
  const [isShown, setShown] = useState(isImage && bytes <= MAX_SHOWN_BYTES);
  const name = file.filename ?? 'File without a name';
  return (
    <figure className="file">
      {isShown &&
        (isPdf ? <Pdf fileId={fileId} name={name} /> : <Image fileId={fileId} mediaType={mediaType} name={name} />)}
      <FileCaption file={file} read={() => readContent(client, fileId)}>
        {(isImage || isPdf) && !isShown && (
          <Button small onClick={() => setShown(true)}>
            {isPdf ? 'Show pages' : 'Show image'}
          </Button>
        )}
      </FileCaption>
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

async function readContent(client: Signalbox, fileId: string): Promise<ArrayBuffer> {
  return await new Response(await client.files.content(fileId)).arrayBuffer();
}
