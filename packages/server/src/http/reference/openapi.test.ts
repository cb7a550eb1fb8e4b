import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { documentedRoutes, permissionOf, type Route, type RouteName, scopesOf } from '@signalbox/contract';
import { Compile } from 'typebox/compile';
import { describe, expect, test } from 'vitest';
import {
  committedFile,
  errorsPage,
  errorsPageText,
  keysPage,
  keysPageText,
  openApiJson,
} from '../../../scripts/write-openapi.ts';
import { bodyExamples } from './body-examples.ts';
import { openApiDocument } from './openapi.ts';

const document = openApiDocument(documentedRoutes, '0.1.0');
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

test('the committed openapi.json is that of the contract: node packages/server/scripts/write-openapi.ts', () => {
  expect(readFileSync(committedFile, 'utf8')).toBe(openApiJson());
});

test('docs/guides/keys.md lists every operation by its scope: npm run openapi', () => {
  expect(readFileSync(keysPage, 'utf8')).toBe(keysPageText());
});

test('docs/reference/errors.md lists every error code: npm run openapi', () => {
  expect(readFileSync(errorsPage, 'utf8')).toBe(errorsPageText());
});

describe('the document', () => {
  test('is valid OpenAPI 3.1, according to an independent validator', async () => {
    const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(document)));
    expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
  });

  test('has every route once, with its permission and its scope, and explains every tag', () => {
    const described = operations.map(({ path, method, operation }) => [
      operation.operationId,
      `${method.toUpperCase()} ${path}`,
      operation['x-permission'],
      JSON.stringify(operation.security[0]),
    ]);
    const wanted = Object.entries<Route>(documentedRoutes).map(([name, route]) => [
      name,
      `${route.method} /api/v1${route.path}`,
      route.byOperator ? undefined : permissionOf(route),
      JSON.stringify(route.byOperator ? { operatorToken: [] } : { apiKey: scopesOf(route) }),
    ]);
    expect(described.toSorted()).toEqual(wanted.toSorted());
    const explained = document.tags.map(({ name }) => name);
    expect(explained.toSorted()).toEqual(
      [...new Set(Object.values<Route>(documentedRoutes).map(({ tag }) => tag))].toSorted(),
    );
  });

  test('names every body, and describes every operation, for the programs that generate clients', () => {
    for (const { path, method, operation } of operations) {
      expect(operation.description, `${method} ${path}`).toMatch(/permission|rights|Only for the operator/);
      for (const { content = {} } of Object.values(operation.responses)) {
        for (const [type, { schema }] of Object.entries(content))
          if (type !== 'text/csv') expect(schema.$ref, `${method} ${path}`).toBeDefined();
      }
    }
    expect(document.components.schemas).toHaveProperty('SessionResult');
    expect(document.components.schemas).toHaveProperty('ListedSessionList');
  });

  test('describes the items of every array', () => {
    const arrays: unknown[] = [];
    JSON.stringify(document, (_, value) => {
      if (value?.type === 'array' && !('items' in value)) arrays.push(value);
      return value;
    });
    expect(arrays).toEqual([]);
  });

  test('refers only to what it contains', () => {
    const references = [...JSON.stringify(document).matchAll(/"(#\/[^"]+)"/g)].map(([, path = '']) => path);
    expect(references.length).toBeGreaterThan(100);
    for (const path of new Set(references)) {
      const found = path
        .slice(2)
        .split('/')
        .reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], document);
      expect(found, path).toBeDefined();
    }
  });

  test('declares every parameter of a path, and no other', () => {
    for (const { path, operation } of operations) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = operation.parameters.filter((parameter) => parameter.in === 'path');
      expect(declared.map(({ name }) => name).toSorted(), path).toEqual(named.toSorted());
    }
  });

  test('names the error codes of each route', () => {
    const codes = (name: RouteName) =>
      operations.find(({ operation }) => operation.operationId === name)?.operation['x-error-codes'];
    expect(codes('resolveApproval')).toEqual(
      expect.arrayContaining([
        'approval_already_resolved',
        'not_found',
        'idempotency_conflict',
        'insufficient_permission',
        'payload_too_large',
      ]),
    );
    expect(codes('listAgents')).toContain('invalid_cursor');
    expect(codes('listAgents')).toContain('insufficient_permission');
    expect(codes('getMe')).not.toContain('insufficient_permission');
    expect(codes('listAgents')).not.toContain('not_found');
  });

  test('writes filters by metadata as deepObject, and the stream as an event stream', () => {
    const metadata = document.paths['/api/v1/sessions']?.get?.parameters.find(({ name }) => name === 'metadata');
    expect(metadata).toMatchObject({ in: 'query', style: 'deepObject', explode: true });
    const stream = document.paths['/api/v1/sessions/{sessionId}/stream']?.get?.responses[200];
    expect(Object.keys(stream?.content ?? {})).toEqual(['text/event-stream']);
  });

  test('gives each success of an operation one type, which generated clients can return', () => {
    const several = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.values(operations).flatMap(({ responses }) =>
        Object.entries(responses)
          .filter(([status, { content = {} }]) => Number(status) < 300 && Object.keys(content).length > 1)
          .map(([status]) => `${path} ${status}`),
      ),
    );
    // A format that the caller chooses.
    expect(several.filter((one) => !one.includes('/export '))).toEqual([]);
    expect(document.paths['/api/v1/sessions']?.post?.description).toContain('With `Accept: text/event-stream`');
  });
});

test('every operation that takes a body shows one, and the contract accepts it', () => {
  for (const [name, route] of Object.entries<Route>(documentedRoutes)) {
    const example = bodyExamples[name as keyof typeof bodyExamples];
    expect(example === undefined, name).toBe(route.body === undefined);
    if (route.body) expect([...Compile(route.body).Errors(example)], name).toEqual([]);
  }
});
