import { defineConfig } from 'vitest/config';

// Everything but the code beside a test is imported as built (`dist/`), as users run it: `npm run build` first.
const shared = { testTimeout: 20_000, hookTimeout: 60_000, teardownTimeout: 20_000 };

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    projects: [
      { test: { ...shared, name: 'unit', include: ['{packages,services}/*/src/**/*.test.ts'] } },
      {
        test: {
          ...shared,
          name: 'integration',
          include: ['{packages,services}/*/test/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        // The product as processes.
        test: {
          ...shared,
          name: 'system',
          include: ['test/**/*.test.ts'],
          globalSetup: ['test/support/data-dir-template.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
