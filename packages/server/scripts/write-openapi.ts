/**
 * Writes openapi.json at the root of the repository, from the contract.
 *
 *     node packages/server/scripts/write-openapi.ts
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { routes } from '@signalbox/contract';
import manifest from '../package.json' with { type: 'json' };
import { openApiDocument } from '../src/http/reference/openapi.ts';

export const committedFile = fileURLToPath(new URL('../../../openapi.json', import.meta.url));

/** The expected content of the file. */
export function openApiJson(): string {
  return `${JSON.stringify(openApiDocument(routes, manifest.version), null, 2)}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(committedFile, openApiJson());
