// The client in a page: what a bundler makes of its entry.
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { build, type Rolldown } from 'vite';
import { expect, test } from 'vitest';

test('a browser bundle of the client needs nothing of Node.js, and loads where there is none of it', async () => {
  const entry = fileURLToPath(new URL('../src/index.ts', import.meta.url));
  const [result] = (await build({
    logLevel: 'error',
    configFile: false,
    build: { write: false, minify: false, lib: { entry, formats: ['iife'], name: 'signalbox' } },
  })) as Rolldown.RolldownOutput[];
  const [chunk, ...others] = result!.output;
  expect(others).toEqual([]);
  expect(chunk.imports).toEqual([]);
  // Only who shows a session pays for the store of its conversation.
  expect(chunk.moduleIds.filter((id) => id.includes('/conversation/'))).toEqual([]);
  // What a bundler cannot find in a browser, it leaves out with a stub of this name.
  expect(chunk.code).not.toMatch(/__vite-browser-external|require\(|from ["']node:/);
  const page = {
    fetch: async () => new Response('{}'),
    URL,
    URLSearchParams,
    AbortController,
    TextDecoder,
    TextEncoder,
    crypto,
    setTimeout,
    clearTimeout,
  };
  const load = `${chunk.code}; new signalbox.Signalbox({ baseUrl: 'https://signalbox.example.com', token: async () => 'sbt_x' })`;
  expect(runInNewContext(load, { ...page, globalThis: page })).toHaveProperty('sessions');
});
