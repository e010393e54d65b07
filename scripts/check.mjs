// npm run check: types, lint with type information (which holds the import boundaries), format.
import { run } from './lib/run.mjs';

await run('npx', ['turbo', 'run', 'build', '--output-logs=errors-only']);
await run('npx', ['tsc', '-p', 'tsconfig.tests.json']);
await run('npx', ['oxlint', '--type-aware', '--deny-warnings']);
await run('npx', ['prettier', '--check', '--log-level', 'warn', '.']);
console.log('check: types, lint, boundaries and format are fine');
