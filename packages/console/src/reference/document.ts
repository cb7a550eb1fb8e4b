/** What the page itself reads of openapi.json. */
export interface OpenApiDocument {
  paths: Record<string, Record<string, { operationId: string; tags: string[] }>>;
  components: { examples: Record<string, unknown> };
}
