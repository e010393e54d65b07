import { PatchbayError } from '@patchbay/core';
import type { FastifyInstance } from 'fastify';
import type { HttpFrontOptions } from './front-options.js';
import { allowOnly } from './method-not-allowed.js';
import { pathSegment } from './path-segment.js';
import { publicBaseUrl } from './public-base-url.js';
import { publishedCard } from './published-card.js';

const PLATFORM_CARD = '/.well-known/agent-card.json';
const AGENT_CARD = '/a2a/:id/.well-known/agent-card.json';
const MODES = ['text'];

/** The platform's own card. @param ownUrl of this front, for requests whose host cannot be used */
export function platformCardRoute(app: FastifyInstance, { settings }: HttpFrontOptions, ownUrl: () => string): void {
  // KubeMQ's clients look for its name in its own spelling.
  const title = settings.name === 'kubemq' ? 'KubeMQ' : settings.name;
  app.get(PLATFORM_CARD, (request) => ({
    name: settings.name,
    description: `${title} A2A Gateway`,
    version: settings.version,
    url: `${publicBaseUrl(request, settings.publicUrl, ownUrl())}/`,
    skills: [],
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    protocolVersions: ['1.0'],
  }));
  allowOnly(app, PLATFORM_CARD, ['GET', 'HEAD']);
}

/** The card of each agent, with the gateway's address. */
export function agentCardRoute(app: FastifyInstance, options: HttpFrontOptions, ownUrl: () => string): void {
  const { directory, settings } = options;
  app.get(AGENT_CARD, (request) => {
    const agent = directory.get(pathSegment(request.raw.url ?? '', 2));
    if (agent === undefined) throw new PatchbayError('agent_not_found', 'agent not found');
    const base = publicBaseUrl(request, settings.publicUrl, ownUrl());
    return publishedCard(agent, `${base}/a2a/${agent.record.agentId}`);
  });
  allowOnly(app, AGENT_CARD, ['GET', 'HEAD']);
}
