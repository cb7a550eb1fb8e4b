/**
 * Writes openapi.json at the root of the repository, and the tables of operations in docs/guides/keys.md and of errors in
 * docs/reference/errors.md, from the contract.
 *
 *     node packages/server/scripts/write-openapi.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { documentedRoutes, routes } from '@signalbox/contract';
import manifest from '../package.json' with { type: 'json' };
import { withErrorTable } from '../src/http/reference/error-table.ts';
import { openApiDocument } from '../src/http/reference/openapi.ts';
import { withScopeTable } from '../src/http/reference/scope-table.ts';

export const committedFile = fileURLToPath(new URL('../../../openapi.json', import.meta.url));

export const keysPage = fileURLToPath(new URL('../../../docs/guides/keys.md', import.meta.url));

export const errorsPage = fileURLToPath(new URL('../../../docs/reference/errors.md', import.meta.url));

/** The expected content of the file. */
export function openApiJson(): string {
  return `${JSON.stringify(openApiDocument(documentedRoutes, manifest.version), null, 2)}\n`;
}

/** The page with the table as the contract has it. */
export function keysPageText(): string {
  return withScopeTable(readFileSync(keysPage, 'utf8'), routes);
}

/** The page with the table as the contract has it. */
export function errorsPageText(): string {
  return withErrorTable(readFileSync(errorsPage, 'utf8'), documentedRoutes);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(committedFile, openApiJson());
  writeFileSync(keysPage, keysPageText());
  writeFileSync(errorsPage, errorsPageText());
}
