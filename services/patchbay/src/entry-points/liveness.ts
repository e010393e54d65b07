#!/usr/bin/env node
import { runCli } from '../cli.js';

await runCli(['--services', 'liveness', ...process.argv.slice(2)]);
