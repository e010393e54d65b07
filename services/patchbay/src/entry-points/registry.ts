#!/usr/bin/env node
import { runCli } from '../cli.js';

await runCli(['--services', 'registry', ...process.argv.slice(2)]);
