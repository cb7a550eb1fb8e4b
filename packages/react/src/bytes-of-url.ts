/** The bytes of a `data:` or a `blob:` URL; undefined for any other. Throws if a `blob:` URL can't be read. */
export async function bytesOfUrl(url: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (url.startsWith('blob:')) return await bytesOfBlob(url);
  // Not by `fetch`, which depends on the content security policy of the page.
  const [, base64, data] = /^data:[^,]*?(;base64)?,(.*)$/s.exec(url) ?? [];
  if (data === undefined) return undefined;
  const decoded = decodeURIComponent(data);
  return base64 ? Uint8Array.from(atob(decoded), (char) => char.charCodeAt(0)) : new TextEncoder().encode(decoded);
}

async function bytesOfBlob(url: string): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return new Uint8Array(await (await fetch(url)).arrayBuffer());
  } catch (cause) {
    const why = 'it was revoked, or the content security policy of the page has no `connect-src blob:`';
    throw new Error(`The file ${url} can't be read: ${why}. Send it with a data: URL instead`, { cause });
  }
}
