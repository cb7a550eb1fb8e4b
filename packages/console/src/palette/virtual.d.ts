/** The operations of the API: id, summary, and method with path (vite.config.ts). */
declare module 'virtual:operations' {
  const operations: readonly (readonly [operationId: string, summary: string, request: string])[];
  export default operations;
}
