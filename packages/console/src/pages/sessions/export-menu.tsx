import { Download } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useOrganization } from '../../organization.tsx';
import { blobOf, save } from '../../save-file.ts';
import { Button } from '../../ui/button.tsx';
import { Menu } from '../../ui/menu.tsx';
import { useToast } from '../../ui/toast.tsx';
import { filtersOf, type SessionSearch } from './search-params.ts';

/** Downloads all sessions that match, not only those that are loaded. */
export function ExportMenu({ search }: { search: SessionSearch }) {
  const { client } = useOrganization();
  const toast = useToast();
  const [bytes, setBytes] = useState<number>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  async function start(format: 'csv' | 'jsonl') {
    const over = new AbortController();
    running.current = over;
    setBytes(0);
    try {
      const params = { ...filtersOf(search), ...(search.order && { order: search.order }), format };
      const stream = await client.sessions.download(params, { signal: over.signal });
      const type = format === 'csv' ? 'text/csv' : 'application/jsonl';
      save(await blobOf(stream, type, over.signal, setBytes), `sessions.${format}`);
      toast('Exported');
    } catch (error) {
      if (!over.signal.aborted) toast(`The export failed: ${(error as Error).message}`);
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
