/** The URL of Scalar's script (vite.config.ts). */
declare module 'virtual:scalar' {
  const url: string;
  export default url;
}
