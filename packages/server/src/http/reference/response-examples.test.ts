import { documentedRoutes, type ErrorCode, errorCodes, Problem, type Route } from '@signalbox/contract';
import { Value } from 'typebox/value';
import { describe, expect, test } from 'vitest';
import { openApiDocument } from './openapi.ts';
import { problemExample, responseExample } from './response-examples.ts';

const document = openApiDocument(documentedRoutes, '0.1.0');
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));

describe('the examples of responses', () => {
  test.each(Object.entries<Route>(documentedRoutes).filter(([, { stream }]) => stream !== 'content'))(
    'that of %s is one that the contract allows',
    (name, route) => {
      expect([...Value.Errors(route.result, responseExample(name, route))]).toEqual([]);
    },
  );

  test('every successful response with a body has one, and they are the same each time', () => {
    for (const { operationId, responses } of operations) {
      for (const [status, { content = {} }] of Object.entries(responses)) {
        if (!status.startsWith('2')) continue;
        for (const [type, { example }] of Object.entries(content)) {
          const isBytes = type === 'application/octet-stream' || type === 'text/csv';
          expect(example === undefined, `${operationId} ${status} ${type}`).toBe(isBytes);
        }
      }
    }
    expect(openApiDocument(documentedRoutes, '0.1.0')).toEqual(document);
  });

  test('every error response has one for each of its codes, with its status', () => {
    const named = document.components.examples as Record<string, { value: Problem }>;
    for (const { operationId, responses, ...operation } of operations) {
      const shown = Object.entries(responses).flatMap(([status, { content = {} }]) =>
        Object.keys(content['application/problem+json']?.examples ?? {}).map((code) => {
          expect(named[code]?.value.status, code).toBe(Number(status));
          return code;
        }),
      );
      expect(shown.toSorted(), operationId).toEqual(operation['x-error-codes'].toSorted());
    }
  });

  test('those of errors are Problems', () => {
    for (const code of Object.keys(errorCodes) as ErrorCode[]) {
      expect([...Value.Errors(Problem, problemExample(code))], code).toEqual([]);
    }
  });

  test('a time never precedes the one that it follows', () => {
    const after = { updatedAt: 'createdAt', endedAt: 'startedAt', finishedAt: 'createdAt', resolvedAt: 'requestedAt' };
    for (const { operationId, responses } of operations) {
      JSON.stringify(responses, (_, value) => {
        for (const [late, early] of Object.entries(after)) {
          if (typeof value?.[late] === 'string' && typeof value[early] === 'string') {
            expect(value[late] >= value[early], `${operationId}: ${late}`).toBe(true);
          }
        }
        return value;
      });
    }
  });
});
