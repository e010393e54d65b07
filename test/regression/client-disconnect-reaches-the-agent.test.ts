import { eventually, PatchbayProcess } from '@patchbay/testkit';
import { expect, test } from 'vitest';
import { openRawStream, registerAgent } from '../support/gateway-client.js';
import { startKubemqAgent } from '../support/kubemq-agents.js';

// A client that goes away while the agent is silent is only noticed by its socket: FIN, RST or half-close.
test.each(['fin', 'rst', 'half-close'] as const)(
  '%s closes the call at a silent agent within a second',
  async (how) => {
    await using node = await PatchbayProcess.start();
    await using agent = await startKubemqAgent((_rpc, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('event: task.status\ndata: {"type":"status_update","payload":{}}\n\n');
    });
    await registerAgent(node, 'silent', agent.url);
    for (let round = 1; round <= 34; round += 1) {
      const socket = await openRawStream(node, 'silent', { allowHalfOpen: how === 'half-close' });
      if (how === 'rst') socket.resetAndDestroy();
      else if (how === 'fin') socket.destroy();
      else socket.end();
      await eventually(() => agent.hangUps() === round, { withinMs: 1_000, what: `hang-up ${round} at the agent` });
      socket.destroy();
    }
    const metrics = await (await fetch(`${node.metricsUrl}/metrics`)).text();
    expect(metrics).toMatch(/^patchbay_a2a_sse_streams_active\{agent_id="silent"\} 0$/m);
  },
);
