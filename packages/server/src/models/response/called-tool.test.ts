import { expect, test } from 'vitest';
import { calledTool } from './called-tool.ts';

test.each([
  ['look', 'look'],
  ['look<|channel|>commentary', 'look'],
  ['look<|constrain|>json', 'look'],
  ['functions.look', 'look'],
  ['functions.look<|channel|>json', 'look'],
  ['functions.look:0', 'look'],
  ['assistant to=functions.look', 'look'],
  ['default_api:look', 'look'],
  [' look ', 'look'],
  // A tool of its own has this name.
  ['functions.find', 'functions.find'],
  ['look.up', 'look.up'],
  ['functions.up', 'functions.up'],
  ['overlook', 'overlook'],
  ['<|channel|>', '<|channel|>'],
  ['', ''],
])('%j is the tool %j', (name, tool) => {
  expect(calledTool(name, new Set(['look', 'functions.find', 'find']))).toBe(tool);
});
