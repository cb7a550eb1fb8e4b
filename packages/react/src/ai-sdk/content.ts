/** A message of the AI SDK as the content of a message of a session. */
import type { Content, StoredFile } from '@signalbox/client';
import { sendableText } from '@signalbox/client/conversation';
import type { FileUIPart, UIMessage } from 'ai';
import { bytesOfUrl } from '../bytes-of-url.ts';

type Upload = (
  file: Uint8Array<ArrayBuffer>,
  params: { mediaType: string; filename: string | undefined },
) => Promise<StoredFile>;

/** Uploads the files of the message that the service does not have. */
export async function contentOf({ parts }: UIMessage, upload: Upload): Promise<Content> {
  const content = await Promise.all(
    parts.map(async (part) => {
      if (part.type === 'text') {
        const text = sendableText(part.text);
        return text ? [{ type: 'text' as const, text }] : [];
      }
      if (part.type !== 'file') return [];
      const { mediaType, filename } = part;
      const fileId = fileIdOf(part) ?? (await upload(await bytesOf(part), { mediaType, filename })).fileId;
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

async function bytesOf({ url }: FileUIPart): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await bytesOfUrl(url);
  if (bytes) return bytes;
  throw new Error(`A file that is sent needs a data: or blob: URL, or a file of the service, not ${url}`);
}
