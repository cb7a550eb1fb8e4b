// The command that continues a turn without what its provider refuses.
import { expect, test } from 'vitest';
import { retryCommand } from './retry-text.ts';

test('the command names everything that may be refused, and a shell reads each name as one word', () => {
  const without = { fileIds: ['file_1', 'file_2'], messageIds: ['msg_1'], tools: ['crm__find', "it's $(odd)"] };
  expect(retryCommand('ses_1', without)).toBe(
    `signalbox sessions retry ses_1 --without-file file_1 --without-file file_2 --without-message msg_1 --without-tool crm__find --without-tool 'it'\\''s $(odd)'`,
  );
});
