/** As in package.json (a test compares), and as in the `User-Agent` of every call. */
export const version = '0.1.0';
