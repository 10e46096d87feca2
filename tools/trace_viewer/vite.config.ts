// SPDX-License-Identifier: Apache-2.0
// Builds one HTML file that needs nothing beside it; the parsing worker is inlined by its import.
import { defineConfig } from 'vitest/config';
import { viteSingleFile } from 'vite-plugin-singlefile';

export default defineConfig({
  plugins: [viteSingleFile()],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: { target: 'es2022', modulePreload: false, chunkSizeWarningLimit: 2000 },
  worker: { format: 'iife' },
  test: {
    include: ['test/unit/*.test.ts', 'test/browser/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // The browser tests measure times: one file after the other.
    fileParallelism: false,
    pool: 'forks',
  },
});
