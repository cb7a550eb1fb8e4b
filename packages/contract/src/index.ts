/**
 * The wire format of Signalbox: resources, chunks, errors, the route table and the signing constants, as TypeBox schemas
 * (JSON Schema and TypeScript type in one value). It does no I/O and has no other dependency.
 */
export * from './agents.ts';
export * from './analytics.ts';
export * from './approvals.ts';
export * from './authoring.ts';
export * from './budgets.ts';
export * from './chunks.ts';
export * from './cited-sources.ts';
export * from './components.ts';
export * from './constants.ts';
export * from './destinations.ts';
export * from './drafts.ts';
export * from './end-users.ts';
export * from './environments.ts';
export * from './errors.ts';
export * from './events.ts';
export * from './files.ts';
export * from './keys.ts';
export * from './left-out.ts';
export * from './model-facts.ts';
export * from './model-servers.ts';
export * from './models.ts';
export * from './needed-secrets.ts';
export * from './operations.ts';
export * from './overview.ts';
export * from './people.ts';
export * from './providers.ts';
export * from './routes.ts';
export * from './schedules.ts';
export * from './schema.ts';
export * from './scopes.ts';
export * from './session-state.ts';
export * from './sessions.ts';
export * from './shares.ts';
export * from './signing.ts';
export * from './timeline.ts';
export * from './token-views.ts';
export * from './tokens.ts';
export * from './tools.ts';
export * from './usage.ts';
export * from './web-search.ts';
export * from './webhooks.ts';
export * from './workers.ts';
