/** As in package.json (a test compares them), and in the `User-Agent` of every call. */
export const version = '0.2.0-dev';
