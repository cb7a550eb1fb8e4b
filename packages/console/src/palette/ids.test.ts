import { idPrefixes } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { metadataIn, pageOfId } from './ids.ts';

const body = '01k9xq3v7gf3pbt8zn5e6m2r4c';

test.each([
  ['ses', '/sessions/ses_'],
  ['agt', '/agents/agt_'],
  ['op', '/approvals/op_'],
  ['call', '/approvals/op_'],
  ['sch', '/schedules/sch_'],
])('an id with the prefix %s has its own page', (prefix, path) => {
  expect(pageOfId(` ${prefix}_${body}\n`)?.to).toBe(`${path}${body}`);
});

test('every other id finds its events, except those that no event names', () => {
  const none = idPrefixes.filter((prefix) => pageOfId(`${prefix}_${body}`) === undefined);
  expect(none).toEqual(['org', 'msg', 'req']);
  expect(pageOfId(`evt_${body}`)?.search).toEqual({ event: `evt_${body}` });
  expect(pageOfId(`whd_${body}`)?.search).toEqual({ resourceId: `whd_${body}` });
});

test('what only resembles an id is not one', () => {
  for (const text of ['ses_1', `ses_${body}x`, `ses-${body}`, body, `ses_${body.toUpperCase()}`, `../ses_${body}`])
    expect(pageOfId(text)).toBeUndefined();
});

test('metadata is a name and a value, which may contain an equals sign', () => {
  expect(metadataIn('customer=17')).toEqual({ customer: '17' });
  expect(metadataIn(' ref=a=b ')).toEqual({ ref: 'a=b' });
  expect(metadataIn('two words=1')).toBeUndefined();
  expect(metadataIn('=1')).toBeUndefined();
});
