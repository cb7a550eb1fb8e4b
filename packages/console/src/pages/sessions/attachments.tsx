// Files that are attached to a message: chosen, dropped or pasted, and uploaded at once, so that sending does not wait.
import type { Content } from '@signalbox/client';
import { maxFileBytes } from '@signalbox/contract';
import { Paperclip } from 'lucide-react';
import {
  type ClipboardEvent,
  type Dispatch,
  type DragEvent,
  type SetStateAction,
  useEffect,
  useRef,
  useState,
} from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { sizeText } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { PlainText } from '../../ui/text.tsx';
import './attachments.css';

export interface Attachment {
  key: string;
  name: string;
  bytes: number;
  /** From 0 to 1. */
  progress: number;
  /** Once it is uploaded. */
  fileId?: string;
  error?: string;
}

/** The limit of a message; the service allows 100 parts. */
const MAX_FILES = 20;

export function useAttachments(
  environment: string,
  attachments: readonly Attachment[],
  setAttachments: Dispatch<SetStateAction<readonly Attachment[]>>,
) {
  const { client } = useOrganization();
  const [isOver, setOver] = useState(false);
  const uploads = useRef(new Map<string, AbortController>());
  const removed = useRef(new Set<string>());

  // A file that is dropped beside the box would replace the page.
  useEffect(() => {
    const prevent = (event: globalThis.DragEvent) => event.preventDefault();
    const kinds = ['dragover', 'drop'] as const;
    for (const kind of kinds) window.addEventListener(kind, prevent);
    return () => {
      for (const kind of kinds) window.removeEventListener(kind, prevent);
    };
  }, []);

  function change(key: string, more: Partial<Attachment>): void {
    setAttachments((all) => all.map((one) => (one.key === key ? { ...one, ...more } : one)));
  }

  async function upload(key: string, file: File): Promise<void> {
    const stop = new AbortController();
    uploads.current.set(key, stop);
    try {
      const { fileId } = await client.files.upload(
        file,
        {
          environment,
          onProgress: ({ sentBytes, totalBytes }) => change(key, { progress: sentBytes / (totalBytes || 1) }),
        },
        { signal: stop.signal },
      );
      if (removed.current.has(key)) discard(fileId);
      else change(key, { fileId, progress: 1 });
    } catch (error) {
      if (!stop.signal.aborted) change(key, { error: (error as Error).message });
    }
    uploads.current.delete(key);
  }

  function add(files: Iterable<File>): void {
    const chosen = [...files].slice(0, MAX_FILES - attachments.length);
    const added = chosen.map((file) => {
      const wrong = file.size === 0 ? 'The file is empty.' : file.size > maxFileBytes ? 'At most 32 MiB.' : undefined;
      const key = crypto.getRandomValues(new Uint32Array(2)).join('-');
      const attachment = { key, name: file.name, bytes: file.size, progress: 0, ...(wrong && { error: wrong }) };
      return { file, attachment };
    });
    setAttachments((all) => [...all, ...added.map(({ attachment }) => attachment)]);
    for (const { file, attachment } of added) if (!attachment.error) void upload(attachment.key, file);
  }

  function remove({ key, fileId, progress }: Attachment): void {
    removed.current.add(key);
    // Once all of it has been sent, the service may have stored it: then the response is needed to delete it.
    if (progress < 1) uploads.current.get(key)?.abort(new Error('removed'));
    setAttachments((all) => all.filter((one) => one.key !== key));
    if (fileId) discard(fileId);
  }

  /** Deletes a file that nothing names yet. If this fails, the service deletes it later, as unused. */
  function discard(fileId: string): void {
    client.files.delete(fileId).catch(() => {});
  }

  return {
    isOver,
    remove,
    add,
    /** For the element that takes files. */
    dropTarget: {
      onDragOver(event: DragEvent) {
        if (!event.dataTransfer.types.includes('Files')) return;
        event.preventDefault();
        setOver(true);
      },
      onDragLeave: () => setOver(false),
      onDrop(event: DragEvent) {
        event.preventDefault();
        setOver(false);
        add(event.dataTransfer.files);
      },
      onPaste(event: ClipboardEvent) {
        // A table copied from a spreadsheet is text, and an image of it.
        if (event.clipboardData.files.length === 0 || event.clipboardData.types.includes('text/plain')) return;
        event.preventDefault();
        add(event.clipboardData.files);
      },
    },
  };
}

/** Opens the browser's dialog. */
export function AttachButton({ onFiles, disabled }: { onFiles: (files: Iterable<File>) => void; disabled: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files to attach"
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])]);
          // So that the same file can be chosen again.
          currentTarget.value = '';
        }}
      />
      <Button
        look="bare"
        className="icon"
        aria-label="Attach files"
        title="Attach files"
        disabled={disabled}
        onClick={() => input.current?.click()}
      >
        <Paperclip aria-hidden="true" />
      </Button>
    </>
  );
}

export function AttachmentList({
  attachments,
  onRemove,
}: {
  attachments: readonly Attachment[];
  onRemove: (attachment: Attachment) => void;
}) {
  if (attachments.length === 0) return null;
  return (
    <ul className="attachments" aria-label="Attached files">
      {attachments.map((attachment) => {
        const { key, name, bytes, progress, fileId, error } = attachment;
        return (
          <li key={key} className="row small" data-failed={error !== undefined || undefined}>
            <span className="name">
              <PlainText text={name} />
            </span>
            <span className="quiet">{sizeText(bytes)}</span>
            {error !== undefined ? (
              <span className="bad" role="alert">
                {error}
              </span>
            ) : (
              !fileId && <progress value={progress} aria-label={`Upload of ${name}`} />
            )}
            <Button small look="bare" aria-label={`Remove ${name}`} onClick={() => onRemove(attachment)}>
              Remove
            </Button>
          </li>
        );
      })}
    </ul>
  );
}

/** The content of a message. What failed to upload is not sent. */
export function contentOf({ text, attachments }: { text: string; attachments: readonly Attachment[] }): Content {
  const files = attachments.flatMap(({ fileId }) => (fileId ? [{ type: 'file' as const, fileId }] : []));
  if (files.length === 0) return text;
  return [...(text.trim() === '' ? [] : [{ type: 'text' as const, text }]), ...files];
}
