import type { Config } from '@patchbay/config';
import type { RunningNode } from './start-node.js';
import { VERSION } from './version.js';

/** The port that the examples call when they are told nothing. */
const DEFAULT_PORT = 9090;

/** What the banner speaks of. */
export interface BannerFacts extends Pick<RunningNode, 'url' | 'metricsUrl' | 'isMetricsPortMoved'> {
  readonly config: Config;
  readonly readyInMs: number;
}

/** What a person needs to know when a node is ready: where it is and what to paste next. */
export function banner(facts: BannerFacts): string {
  const { config, url } = facts;
  const lines = [`Patchbay ${VERSION} is ready in ${Math.round(facts.readyInMs)} ms`, ''];
  if (url !== null) {
    const opening = config.httpHost === 'loopback' ? '  (this machine only; PATCHBAY_HTTP_HOST=0.0.0.0 opens it)' : '';
    lines.push(`  gateway   ${url}${opening}`, `  status    ${url}/status`);
  }
  const moved = facts.isMetricsPortMoved ? `  (port ${config.metricsPort} is in use)` : '';
  lines.push(
    `  metrics   ${facts.metricsUrl}/metrics${moved}`,
    `  database  ${config.databaseUrl === null ? `embedded, in ${config.dataDir}: for one machine, one process` : 'Postgres'}`,
    `  node      ${config.nodeId}`,
  );
  if (config.natsUrl === null)
    lines.push('            calls come over HTTP; plain NATS clients need PATCHBAY_NATS_URL');
  if (url !== null && config.a2aEnabled) lines.push('', ...firstSteps(config, url));
  return lines.join('\n');
}

function firstSteps(config: Config, url: string): string[] {
  const card = { agent_id: 'my-agent', name: 'My agent', url: 'http://localhost:7001/' };
  const message = { role: 'user', messageId: 'm-1', parts: [{ kind: 'text', text: 'hello' }] };
  const call = { jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } };
  const ttl = config.agentTtlSeconds;
  return [
    'An agent to try with, in another terminal (it registers itself, as echo-agent):',
    `  ${config.httpPort === DEFAULT_PORT ? '' : `GATEWAY_URL=${url} `}node examples/dist/echo-agent.js`,
    'Register an agent by hand, here the one that listens on port 7001:',
    `  ${curl(`${url}/agents/register`, card)}`,
    'Call it:',
    `  ${curl(`${url}/a2a/${card.agent_id}`, call)}`,
    ttl === 0
      ? 'Agents stay until they are deregistered (PATCHBAY_AGENT_TTL_SECONDS=0).'
      : `An agent registered by hand leaves after ${ttl} s without heartbeats (POST ${url}/agents/heartbeat).`,
  ];
}

function curl(url: string, body: object): string {
  return `curl -X POST ${url} -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
}
