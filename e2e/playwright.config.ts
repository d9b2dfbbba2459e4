import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: 'tests',
  outputDir: 'output/results',
  reporter: 'list',
  // Each journey starts a server with sandboxes of its own.
  workers: 1,
  timeout: 300_000,
  expect: { timeout: 20_000 },
  use: {
    actionTimeout: 20_000,
    launchOptions: {
      executablePath: '/usr/bin/chromium',
      args: [
        // Chromium refuses its own sandbox to root, as which the tests run in containers.
        ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
        // A name that is this machine and that a browser does not take for it.
        '--host-resolver-rules=MAP glovebox.test 127.0.0.1',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    },
  },
});
