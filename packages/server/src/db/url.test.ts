import { describe, expect, test } from 'vitest';
import { checkDatabaseUrl, hostsAndDatabaseOf, urlsOf } from './url.ts';

test.each([
  ['postgres://u:p%40s@h:5433/d', ['postgres://u:p%40s@h:5433/d']],
  ['postgresql://h/d', ['postgres://h/d']],
  ['postgres://u:p@/d?host=/run/pg', ['postgres://u:p@localhost/d?host=%2Frun%2Fpg']],
  ['postgres://u:p@localhost:5433/d?host=/run/pg', ['postgres://u:p@localhost:5433/d?host=%2Frun%2Fpg']],
  ['postgres://u@one:1,two/d?target_session_attrs=read-write', ['postgres://u@one:1/d', 'postgres://u@two/d']],
  ['postgres://u@[::1]:1,[fe80::2]/d', ['postgres://u@[::1]:1/d', 'postgres://u@[fe80::2]/d']],
  ['postgres:///d?host=one,two&port=1,2', ['postgres://localhost:1/d?host=one', 'postgres://localhost:2/d?host=two']],
  ['postgres://h/d?sslmode=require', ['postgres://h/d?sslmode=verify-full']],
  ['postgres://h/d?sslmode=require&uselibpqcompat=true', ['postgres://h/d?sslmode=require&uselibpqcompat=true']],
  ['postgres://h/d?sslmode=no-verify', ['postgres://h/d?sslmode=no-verify']],
])('%s leads to one URL for each host', (text, expected) => {
  checkDatabaseUrl(text);
  expect(urlsOf(text)).toEqual(expected);
});

test('the hosts and database of a URL are shown without user and password', () => {
  expect(hostsAndDatabaseOf('postgres://user:secret@one:1,two/d')).toBe('one:1,two:5432/d');
  expect(hostsAndDatabaseOf('postgres://user:secret@/d?host=/run/pg')).toBe('/run/pg:5432/d');
});

describe('an invalid URL is refused with the reason, and without its password', () => {
  test.each([
    ['mysql://u:secret@h/d', 'is not the URL of a database'],
    ['postgres://u:secret@h:port/d', 'is not the URL of a database'],
    ['postgres://u:secret@h/d?target_session_attrs=standby', 'target_session_attrs=standby'],
    ['postgres://u:secret@h/d?sslmode=verify-full&sslrootcert=/none/ca.crt', 'sslrootcert names /none/ca.crt'],
  ])('%s', (text, message) => {
    expect(() => checkDatabaseUrl(text)).toThrow(message);
    expect(() => checkDatabaseUrl(text)).not.toThrow('secret');
  });
});
