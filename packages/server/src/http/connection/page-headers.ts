// The headers of the pages that the service sends to browsers, in addition to those of every response (server.ts).

/** Headers of a page that loads only its own files, is in no frame, and sends its URL nowhere: URLs contain session ids. */
export function pageHeaders(policy: {
  styles: readonly string[];
  images: readonly string[];
  /** What the page may show in a frame. By default nothing. */
  frames?: readonly string[];
}): Record<string, string> {
  return {
    'Content-Security-Policy': [
      "default-src 'none'",
      "script-src 'self'",
      ...policy.styles,
      `img-src 'self' ${policy.images.join(' ')}`,
      ...(policy.frames ? [`frame-src ${policy.frames.join(' ')}`] : []),
      "font-src 'self'",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  };
}
