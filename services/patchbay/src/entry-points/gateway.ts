#!/usr/bin/env node
import { runCli } from '../cli.js';

await runCli(['--services', 'gateway', ...process.argv.slice(2)]);
