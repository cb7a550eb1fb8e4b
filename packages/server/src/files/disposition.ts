// The name of a file in a `Content-Disposition` header (RFC 6266, and RFC 7578 for the parts of a form).
import { parse } from 'content-disposition';

/**
 * Undefined without one. `filename*` comes before `filename`, which is then for older clients. `header`: its bytes as Latin-1, as Node reads
 * headers; many clients and servers send UTF-8. `multipart`: of a part of a form, where `%22` is a quotation mark.
 */
export function filenameIn(header: string, { multipart = false } = {}): string | undefined {
  return parse(asUtf8(header), { multipart }).parameters.filename;
}

function asUtf8(latin1: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(latin1, 'latin1'));
  } catch {
    return latin1;
  }
}
