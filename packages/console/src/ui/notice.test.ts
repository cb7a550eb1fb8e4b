import { SignalboxError } from '@signalbox/client';
import { expect, test } from 'vitest';
import { fieldError, nameOfPath } from './notice.tsx';

test('a path of the API is read as names of fields', () => {
  expect(nameOfPath('model.baseUrl')).toBe('Model › base URL');
  expect(nameOfPath('tools[0].inputSchema')).toBe('Tool 1 › input schema');
  expect(nameOfPath('model.fallbacks[1].model')).toBe('Model › fallback 2 › model');
  expect(nameOfPath('draft.definition.model.model')).toBe('Model › model');
  expect(nameOfPath('maxCostUsdPerDay')).toBe('Max cost USD per day');
  expect(nameOfPath('')).toBe('');
});

test('the error of a field names the entry of a list, and no other field that begins alike', () => {
  const error = new SignalboxError({
    status: 400,
    code: 'invalid_request',
    detail: '',
    errors: [
      { path: 'allowedHosts[1]', message: 'must be a host' },
      { path: 'names', message: 'must not be empty' },
      { path: 'endUser.id', message: 'must not be empty' },
    ],
  });
  expect(fieldError(error, 'allowedHosts')).toBe('Entry 2 must be a host');
  expect(fieldError(error, 'name')).toBe(undefined);
  expect(fieldError(error, 'endUser')).toBe('must not be empty');
  expect(fieldError(new Error('offline'), 'name')).toBe(undefined);
});
