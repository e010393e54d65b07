#!/usr/bin/env node
import { runCli } from '../cli.js';

await runCli(['--services', 'dispatch', ...process.argv.slice(2)]);
