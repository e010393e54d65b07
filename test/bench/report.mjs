import { median } from './median.mjs';

const GOALS = [
  { name: 'Patchbay', over: 'bare proxy', atLeast: 0.8 },
  { name: 'Patchbay', over: 'http-proxy', atLeast: 1 },
  { name: 'Patchbay, bus forced', over: 'NATS, nc.request()', atLeast: 1.1 },
  { name: 'Patchbay, bus forced', over: 'NATS, multiplexed' },
  { name: 'Patchbay, local-first', over: 'Patchbay', atLeast: 0.95 },
];
const HEADS = ['conn.', 'req/s', 'p50 ms', 'p99 ms', 'RSS MB', 'of bare'];
const NAME_WIDTH = 24;

/** The table of calls, and the goals. */
export function reportThroughput(rows) {
  const lines = [`${'through'.padEnd(NAME_WIDTH)}${HEADS.map((head) => head.padStart(10)).join('')}`];
  for (const row of rows) {
    const cells = [
      String(row.connections),
      row.perSecond.toFixed(0),
      row.p50Ms.toFixed(2),
      row.p99Ms.toFixed(2),
      row.rssMb?.toFixed(0) ?? '-',
      ratio(rows, row.connections, row.name, 'bare proxy').toFixed(2),
    ];
    lines.push(row.name.padEnd(NAME_WIDTH) + cells.map((cell) => cell.padStart(10)).join(''));
  }
  lines.push('');
  const names = new Set(rows.map((row) => row.name));
  for (const connections of new Set(rows.map((row) => row.connections))) {
    for (const { name, over, atLeast } of GOALS) {
      if (!names.has(name) || !names.has(over)) continue;
      const value = ratio(rows, connections, name, over);
      lines.push(`${name} / ${over} at ${connections} connection(s): ${value.toFixed(2)}${verdict(value, atLeast)}`);
    }
  }
  return lines.join('\n');
}

/** What registrations cost on three nodes. */
export function reportThreeNodes(result) {
  const { aloneP50Ms, aloneP99Ms, appliedP50Ms, appliedP99Ms, burstPerSecond, burstP99Ms } = result;
  return [
    'three nodes, one nats-server, one Postgres that flushes; cards of 600 bytes with two skills:',
    `  one registration, applied on all nodes when it answers: p50 ${ms(aloneP50Ms)}, p99 ${ms(aloneP99Ms)}`,
    `  from its event until the last node has applied it: p50 ${ms(appliedP50Ms)}, p99 ${ms(appliedP99Ms)}`,
    `  many at once: ${burstPerSecond.toFixed(0)}/s, p99 ${ms(burstP99Ms)}`,
  ].join('\n');
}

/** One node that holds many agents. */
export function reportManyAgents(agents) {
  return (
    `${agents.count} agents: registered through REST at ${agents.registrationsPerSecond.toFixed(0)}/s; ` +
    `RSS ${mb(agents.rssBeforeMb)} before, ${mb(agents.rssAfterMb)} after, ${mb(agents.rssRestartedMb)} after a restart\n` +
    `first start (creates the database) ${seconds(agents.createdInMs)}, stop ${seconds(agents.stoppedInMs)}, ` +
    `restart with ${agents.count} agents ${seconds(agents.restartedInMs)}`
  );
}

/** The median of the rounds' own ratios: what else the machine did in a round falls on both. */
function ratio(rows, connections, name, over) {
  const find = (wanted) => rows.find((row) => row.name === wanted && row.connections === connections).rates;
  const others = find(over);
  return median(find(name).map((rate, round) => rate / others[round]));
}

function verdict(value, atLeast) {
  if (atLeast === undefined) return '';
  return `, goal ${atLeast.toFixed(2)}: ${value >= atLeast ? 'reached' : 'NOT reached'}`;
}

function ms(value) {
  return `${value.toFixed(1)} ms`;
}

function mb(value) {
  return value === undefined ? '?' : `${value.toFixed(0)} MB`;
}

function seconds(milliseconds) {
  return `${(milliseconds / 1_000).toFixed(2)} s`;
}
