import type { RegisteredAgent } from '@patchbay/agent-card';
import { formatTimestamp } from '@patchbay/core';
import type { ReadinessReport } from '../readiness.js';

/** What the page shows. */
export interface StatusPage {
  readonly name: string;
  readonly version: string;
  readonly nodeId: string;
  readonly uptimeSeconds: number;
  readonly readiness: ReadinessReport;
  readonly agentCount: number;
  /** The first of them, in order of registration. */
  readonly agents: readonly RegisteredAgent[];
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1c2430;background:#fff}
h1{font-size:1.4rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1.5rem}dt{color:#5a6472}dd{margin:0}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .8rem .35rem 0;border-bottom:1px solid #d9dee5;overflow-wrap:anywhere}
@media (prefers-color-scheme:dark){body{color:#e4e8ee;background:#14181e}dt{color:#9aa5b3}th,td{border-color:#333c47}}`;

/** The status page: one HTML document that loads nothing. Everything that agents wrote is escaped. */
export function renderStatusPage(page: StatusPage): string {
  const conditions = Object.entries(page.readiness.conditions).map(
    ([name, { met, detail }]) => `${name}: ${met ? 'ok' : (detail ?? 'not met')}`,
  );
  const state = page.readiness.draining ? 'draining' : page.readiness.ready ? 'ready' : 'not ready';
  const facts: [string, string][] = [
    ['State', [state, ...conditions].join(' · ')],
    ['Version', page.version],
    ['Node', page.nodeId],
    ['Uptime', formatUptime(page.uptimeSeconds)],
    ['Agents', String(page.agentCount)],
  ];
  const more = page.agentCount > page.agents.length ? `<p>The first ${page.agents.length} are shown.</p>` : '';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(page.name)} status</title><style>${STYLE}</style></head><body>
<h1>${escapeHtml(page.name)}</h1>
<dl>${facts.map(([term, value]) => `<dt>${term}</dt><dd>${escapeHtml(value)}</dd>`).join('')}</dl>
<h2>Agents</h2>${more}
<table><thead><tr><th scope="col">Name</th><th scope="col">Id</th><th scope="col">URL</th><th scope="col">Last seen</th></tr></thead>
<tbody>${page.agents.map(row).join('\n')}</tbody></table>
</body></html>
`;
}

function row({ record, lastSeenMs }: RegisteredAgent): string {
  const cells = [record.name, record.agentId, record.url, formatTimestamp(lastSeenMs)];
  return `<tr>${cells.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`;
}

function formatUptime(seconds: number): string {
  const whole = Math.floor(seconds);
  const parts: [number, string][] = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first === -1 ? -1 : first)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ESCAPES[char] ?? char);
}
