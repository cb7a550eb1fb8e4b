/** A message of the AI SDK as the content of a message of a session. */
import type { Content, StoredFile } from '@signalbox/client';
import type { FileUIPart, UIMessage } from 'ai';

type Upload = (
  file: Uint8Array<ArrayBuffer>,
  params: { mediaType: string; filename: string | undefined },
) => Promise<StoredFile>;

/** Uploads the files of the message that the service does not have. */
export async function contentOf({ parts }: UIMessage, upload: Upload): Promise<Content> {
  const content = await Promise.all(
    parts.map(async (part) => {
      if (part.type === 'text') return part.text ? [{ type: 'text' as const, text: part.text }] : [];
      if (part.type !== 'file') return [];
      const fileId = fileIdOf(part) ?? (await upload(...bytesOf(part))).fileId;
      return [{ type: 'file' as const, fileId }];
    }),
  );
  return content.flat();
}

function fileIdOf({ url, providerMetadata, providerReference }: FileUIPart): string | undefined {
  const { fileId } = providerMetadata?.signalbox ?? {};
  if (typeof fileId === 'string') return fileId;
  return providerReference?.signalbox ?? /^signalbox:(file_.+)$/.exec(url)?.[1];
}

/** `fetch` of a `data:` URL depends on the page's content security policy. */
function bytesOf({ url, mediaType, filename }: FileUIPart): Parameters<Upload> {
  const [, base64, data] = /^data:[^,]*?(;base64)?,(.*)$/s.exec(url) ?? [];
  if (data === undefined) throw new Error(`A file that is sent needs a data: URL or a file of the service, not ${url}`);
  const decoded = decodeURIComponent(data);
  const bytes = base64
    ? Uint8Array.from(atob(decoded), (char) => char.charCodeAt(0))
    : new TextEncoder().encode(decoded);
  return [bytes, { mediaType, filename }];
}
