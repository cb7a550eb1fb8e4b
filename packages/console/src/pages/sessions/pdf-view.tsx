// A page of a PDF, drawn on a canvas.
//
// The browser's own viewer does not run in a sandboxed frame, and outside of one it is not ours to restrict. PDF.js reads the file in a
// worker, which the Content-Security-Policy of its script (http/connection/server.ts) keeps from loading or evaluating anything; what comes
// back are drawing instructions. Links, forms and scripts of the file are not looked at.
import { GlobalWorkerOptions, getDocument, type PDFDocumentProxy } from 'pdfjs-dist';
import workerUrl from 'pdfjs-dist/build/pdf.worker.min.mjs?url';
import { useEffect, useRef, useState } from 'react';
import { Button } from '../../ui/button.tsx';

GlobalWorkerOptions.workerSrc = workerUrl;

/** In CSS pixels. A page that is higher than this is drawn smaller. */
const MAX_WIDTH = 720;
const MAX_HEIGHT = 2_000;
/** An image in the file with more pixels is left out. */
const MAX_IMAGE_PIXELS = 25_000_000;

export default function PdfView({ data, name }: { data: ArrayBuffer; name: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [file, setFile] = useState<PDFDocumentProxy>();
  const [page, setPage] = useState(1);
  const [failed, setFailed] = useState(false);

  useEffect(() => {
    const task = getDocument({
      // A copy: the worker takes it over.
      data: new Uint8Array(data.slice(0)),
      // Both would need an exception in the policy.
      useWasm: false,
      useWorkerFetch: false,
      enableXfa: false,
      maxImageSize: MAX_IMAGE_PIXELS,
      // A file can ask for a password or be broken in a thousand ways, none of which is of interest to us.
      verbosity: 0,
    });
    task.promise.then(setFile, () => setFailed(true));
    return () => void task.destroy();
  }, [data]);

  useEffect(() => {
    if (!file || !canvas.current) return;
    const target = canvas.current;
    let isOver = false;
    let stop = () => {};
    async function draw() {
      const shown = await file!.getPage(page);
      if (isOver) return;
      const { width, height } = shown.getViewport({ scale: 1 });
      const scale = Math.min(MAX_WIDTH / width, MAX_HEIGHT / height);
      const viewport = shown.getViewport({ scale: scale * Math.min(devicePixelRatio, 2) });
      target.width = Math.max(1, Math.floor(viewport.width));
      target.height = Math.max(1, Math.floor(viewport.height));
      // 0: without the annotations, which can be links and form fields.
      const drawing = shown.render({ canvas: target, viewport, annotationMode: 0 });
      stop = () => drawing.cancel();
      await drawing.promise;
      target.dataset.page = String(page);
    }
    draw().catch(() => isOver || setFailed(true));
    return () => {
      isOver = true;
      stop();
    };
  }, [file, page]);

  if (failed) return <p className="quiet small">This PDF can’t be shown. Download it to read it.</p>;
  return (
    <div className="stack tight pdf">
      <canvas ref={canvas} role="img" aria-label={`Page ${page} of ${name}`} aria-busy={!file} />
      {file && file.numPages > 1 && (
        <div className="row small">
          <Button small disabled={page === 1} onClick={() => setPage(page - 1)}>
            Previous page
          </Button>
          <span className="quiet">
            Page {page} of {file.numPages}
          </span>
          <Button small disabled={page === file.numPages} onClick={() => setPage(page + 1)}>
            Next page
          </Button>
        </div>
      )}
    </div>
  );
}
