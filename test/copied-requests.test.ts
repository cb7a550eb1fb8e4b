import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { asCurl, asTypeScript } from '../packages/console/src/pages/sessions/trace/as-program.ts';

const hostile = `it's "quoted" $HOME \`id\` $(id) \\ \n{{secrets.KEY}} \${process.exit(1)} </script>`;
const request = {
  method: 'POST',
  url: `https://api.test/v1/'; echo pwned;'?key={{secrets.KEY#2}}`,
  headers: [
    { name: 'authorization', value: 'Bearer {{secrets.KEY#2}}' },
    { name: 'x-note', value: "a'b" },
  ],
  body: JSON.stringify({ text: hostile, key: '{{secrets.KEY#2}}' }),
  secrets: [{ name: 'KEY', shownAs: '{{secrets.KEY#2}}' }],
};
const env = { PATH: process.env.PATH, KEY: `se'cret"$x` };
const filled = (text: string) => text.replaceAll('{{secrets.KEY#2}}', env.KEY);

test('a shell gives curl exactly the request, with the secret of the environment, whatever a model wrote into it', () => {
  // In place of curl, a function that prints its arguments.
  const script = `curl() { for one in "$@"; do printf '%s\\0' "$one"; done; }\n${asCurl(request)}`;
  const args = execFileSync('bash', ['-c', script], { env }).toString().split('\0').slice(0, -1);
  expect(args).toEqual([
    '-X',
    'POST',
    filled(request.url),
    '-H',
    filled('authorization: Bearer {{secrets.KEY#2}}'),
    '-H',
    "x-note: a'b",
    '--data-raw',
    filled(request.body),
  ]);
});

test('the program gives fetch exactly the request', () => {
  const program = `const fetch = async (...args) => ({ status: 200, text: () => JSON.stringify(args) });\n${asTypeScript(request)}`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', program], { env }).toString();
  expect(JSON.parse(printed.slice(4))).toEqual([
    filled(request.url),
    {
      method: 'POST',
      headers: { authorization: filled('Bearer {{secrets.KEY#2}}'), 'x-note': "a'b" },
      body: filled(request.body),
    },
  ]);
});

test('a request without a body or secrets is a program as well', () => {
  const plain = { method: 'GET', url: 'https://api.test/', headers: [], body: null, secrets: [] };
  expect(asCurl(plain)).toBe("curl -X GET 'https://api.test/'");
  expect(asTypeScript(plain)).not.toContain('body');
});
