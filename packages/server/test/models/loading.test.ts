// What is in memory before a provider is used.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

test('the packages of the providers are loaded with the first call, not with the service', async () => {
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = new Set();
    registerHooks({
      load(url, context, next) {
        const [, name] = /\\/node_modules\\/(@[^/]+\\/[^/]+)/.exec(url) ?? [];
        if (name) loaded.add(name);
        return next(url, context);
      },
    });
    await import('@signalbox/server');
    const atStart = [...loaded];
    const { calledProviders } = await import(process.argv[1]);
    for (const [name, provider] of Object.entries(calledProviders)) {
      const model = name === 'google' ? 'gemini' : 'any';
      await provider.model(model, { baseURL: 'https://example.com', fetch });
    }
    console.log(JSON.stringify({ atStart, later: [...loaded].filter((one) => !atStart.includes(one)) }));
  `;
  const providers = new URL('../../src/models/providers/providers.ts', import.meta.url).href;
  const args = ['--input-type=module', '-e', script, providers];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname });
  const { atStart, later } = JSON.parse(stdout) as Record<string, string[]>;
  const packages = ['openai', 'anthropic', 'google', 'openai-compatible', 'amazon-bedrock'].map(
    (name) => `@ai-sdk/${name}`,
  );
  expect(later).toEqual(expect.arrayContaining(packages));
  // The types of errors, without a format.
  expect(atStart!.filter((name) => /^@(ai-sdk|smithy|aws-sdk)\//.test(name))).toEqual(['@ai-sdk/provider']);
});
