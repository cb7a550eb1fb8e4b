import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { apiOperations } from './operations.ts';
import { scalarScript } from './scalar.ts';

const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url));

// Otherwise each set of pages that share something has a file of its own for it: 68 for the first load, and up to 35 for a page.
const groups = [
  { name: 'theme', test: /src[\\/]lib[\\/]theme\.ts$/ },
  { name: 'first', tags: ['$initial' as const], test: (id: string) => !isEntryOrReference.test(id) },
  // What most pages need.
  { name: 'common', minShareCount: 8 },
];
// Vite needs code in its entries, and the reference loads nothing of the console but the theme.
const isEntryOrReference = /\.html$|src[\\/](main\.tsx|reference[\\/].*)$|virtual:scalar$/;

export default defineConfig({
  base: '/console/',
  plugins: [react(), apiOperations(), scalarScript()],
  build: {
    // What has `light-dark()` and `<dialog>`: browsers of 2024.
    target: ['chrome123', 'safari17.5', 'firefox120'],
    // The Content-Security-Policy allows no data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Read by the test of the first load's size.
    manifest: true,
    // In KB. That test limits what a page loads first; the script of the API reference is one of 4.9 MB.
    chunkSizeWarningLimit: 6_000,
    // The console, and the API reference at /docs.
    rolldownOptions: { input: [pathOf('index.html'), pathOf('reference.html')], output: { codeSplitting: { groups } } },
  },
});
