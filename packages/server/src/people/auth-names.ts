// The names and paths that identity.ts shares with the configuration of better-auth (better-auth.ts). They are in a file of their own, so
// that identity.ts can be used before better-auth is loaded.

export const AUTH_PATH = '/console/api/auth';
export const PROVIDER_ID = 'oidc';
/** Where a provider redirects to. */
export const CALLBACK_PATH = `${AUTH_PATH}/callback/${PROVIDER_ID}`;
/** The header that better-auth reads the caller's address from. Clients can't set it: requests to better-auth are built in this service. */
export const ADDRESS_HEADER = 'x-signalbox-address';

export function isHttps(publicUrl: URL): boolean {
  return publicUrl.protocol === 'https:';
}

/** `__Host-`: no other host of the domain can set such a cookie. Browsers accept it only over https. */
export function cookiePrefixOf(publicUrl: URL): string {
  return isHttps(publicUrl) ? '__Host-signalbox' : 'signalbox';
}

export function cookieNameOf(publicUrl: URL): string {
  return `${cookiePrefixOf(publicUrl)}.session_token`;
}

/** The console's page for a failed sign-in with a provider; `?error=` is added. */
export function errorUrlOf(publicUrl: URL): string {
  return `${publicUrl.origin}/console/sign-in`;
}
