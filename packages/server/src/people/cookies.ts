// The console's cookies, as headers.
import { isHttps } from './auth-names.ts';

/** The value of a cookie in a `Cookie` header. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  const own = header?.split(';').find((part) => part.trim().startsWith(`${name}=`));
  return own?.trim().slice(name.length + 1);
}

/** A `Set-Cookie` header. 0 seconds delete the cookie. */
export function setCookie(publicUrl: URL, name: string, value: string, maxAgeSeconds: number): string {
  const secure = isHttps(publicUrl) ? '; Secure' : '';
  return `${name}=${value}; Max-Age=${maxAgeSeconds}; Path=/; HttpOnly; SameSite=Lax${secure}`;
}
