// Downloads everything that matches the filters of a list, not only what is loaded.
import { Download } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { blobOf, save } from '../lib/save-file.ts';
import { Button } from './button.tsx';
import { Menu } from './menu.tsx';
import { errorText } from './notice.tsx';
import { useToast } from './toast.tsx';

export type ExportFormat = 'csv' | 'jsonl';

export function ExportMenu({
  name,
  download,
}: {
  /** The name of the file, without the extension. */
  name: string;
  download: (format: ExportFormat, signal: AbortSignal) => Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
}) {
  const toast = useToast();
  const [bytes, setBytes] = useState<number>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  async function start(format: ExportFormat) {
    const over = new AbortController();
    running.current = over;
    setBytes(0);
    try {
      const type = format === 'csv' ? 'text/csv' : 'application/jsonl';
      const stream = await download(format, over.signal);
      save(await blobOf(stream, type, over.signal, setBytes), `${name}.${format}`);
      toast('Exported');
    } catch (error) {
      if (!over.signal.aborted) toast(`The export failed. ${errorText(error)}`);
    } finally {
      setBytes(undefined);
    }
  }
  if (bytes !== undefined)
    return <Button onClick={() => running.current?.abort()}>Stop export ({(bytes / 1e6).toFixed(1)} MB)</Button>;
  return (
    <Menu
      className="button"
      items={[
        { label: 'CSV, for spreadsheets', onSelect: () => void start('csv') },
        { label: 'JSON Lines', onSelect: () => void start('jsonl') },
      ]}
    >
      <Download aria-hidden="true" />
      Export
    </Menu>
  );
}
