/** As in package.json (a test compares them), and in the `User-Agent` of every call. */
export const version = '0.1.0';
