import { join } from 'node:path';
import { ROOT } from '../lib/root.mjs';
import { readyOrEnded } from './ready.mjs';

const MAIN = join(ROOT, 'services', 'patchbay', 'dist', 'main.js');
const READY_WITHIN_MS = 60_000;

/**
 * Starts a node of the cluster; resolves when it is ready.
 * @param {object} options
 * @param {{ name: string, http: number, metrics: number, grpc: number }} options.node
 * @param {Record<string, string>} options.shared Settings that all nodes have.
 * @param {string} options.dataDir
 * @param {(part: object) => import('./part.mjs').Part} options.start
 */
export async function startNode({ node, shared, dataDir, start }) {
  const part = start({
    name: node.name,
    command: process.execPath,
    args: ['--enable-source-maps', MAIN],
    env: {
      // Settings of the person who starts it hold, but for those that make the cluster.
      PATCHBAY_LOG_LEVEL: 'warn',
      ...process.env,
      ...shared,
      PATCHBAY_SERVICES: '',
      PATCHBAY_NODE_ID: node.name,
      PATCHBAY_HTTP_PORT: String(node.http),
      PATCHBAY_METRICS_PORT: String(node.metrics),
      PATCHBAY_GRPC_PORT: String(node.grpc),
      PATCHBAY_DATA_DIR: dataDir,
    },
    stopSignal: 'TERM',
    // Its log, and what it says when it cannot start; its banner would be said three times.
    isNews: (line) => line.startsWith('{') || line.startsWith('patchbay: '),
    complaint: /^patchbay: |"level":"fatal"/,
  });
  await readyOrEnded(part, READY_WITHIN_MS, async () => {
    const response = await fetch(`http://127.0.0.1:${node.http}/readyz`, { signal: AbortSignal.timeout(2_000) });
    await response.body?.cancel();
    return response.status === 200;
  });
  return part;
}
