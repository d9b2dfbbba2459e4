import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { checkBundle } from './scripts/bundle.ts';

// While developing, calls go to a server that was started by hand.
const server = process.env['GLOVEBOX_SERVER'] ?? 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [react(), checkBundle()],
  server: { proxy: { '/api': server } },
  build: {
    // What is inlined as a data: address would be refused by the policy that the server sends.
    assetsInlineLimit: 0,
    // It would be an inline script.
    modulePreload: { polyfill: false },
    // What is built in asks for its licence to go along.
    license: { fileName: 'licenses.md' },
    chunkSizeWarningLimit: 1000,
  },
});
