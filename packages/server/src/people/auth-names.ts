// The names and addresses that identity.ts and the set-up of better-auth (auth.ts) have in common. They stand apart, so that the
// first of the two can be there before better-auth is loaded.

export const AUTH_PATH = '/console/api/auth';
export const PROVIDER_ID = 'oidc';
/** better-auth reads the address of a request from a header; nobody but us can set it, as requests to it are made here. */
export const ADDRESS_HEADER = 'x-signalbox-address';

export function isHttps(publicUrl: URL): boolean {
  return publicUrl.protocol === 'https:';
}

/** `__Host-`: no other host of the domain can set such a cookie. A browser takes it over https alone. */
export function cookiePrefixOf(publicUrl: URL): string {
  return isHttps(publicUrl) ? '__Host-signalbox' : 'signalbox';
}

export function cookieNameOf(publicUrl: URL): string {
  return `${cookiePrefixOf(publicUrl)}.session_token`;
}

/** Where the console says that signing in by a provider did not work; `?error=` is added. */
export function errorUrlOf(publicUrl: URL): string {
  return `${publicUrl.origin}/console/sign-in`;
}
