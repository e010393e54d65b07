const GOALS = [
  { over: 'bare proxy', atLeast: 0.8 },
  { over: 'http-proxy', atLeast: 1 },
];

/** The one table of the benchmark, and the goals. */
export function report(rows, agents) {
  const lines = [
    `${'through'.padEnd(14)}${['conn.', 'req/s', 'p50 ms', 'p99 ms', 'RSS MB', 'of bare'].map((head) => head.padStart(10)).join('')}`,
  ];
  for (const row of rows) {
    const cells = [
      String(row.connections),
      row.perSecond.toFixed(0),
      row.p50Ms.toFixed(2),
      row.p99Ms.toFixed(2),
      row.rssMb?.toFixed(0) ?? '-',
      ratio(rows, row.connections, row.name, 'bare proxy').toFixed(2),
    ];
    lines.push(row.name.padEnd(14) + cells.map((cell) => cell.padStart(10)).join(''));
  }
  lines.push('');
  for (const connections of new Set(rows.map((row) => row.connections))) {
    for (const { over, atLeast } of GOALS) {
      const value = ratio(rows, connections, 'Patchbay', over);
      const verdict = value >= atLeast ? 'reached' : 'NOT reached';
      lines.push(
        `Patchbay / ${over} at ${connections} connection(s): ${value.toFixed(2)}, goal ${atLeast.toFixed(1)}: ${verdict}`,
      );
    }
  }
  lines.push(
    '',
    `${agents.count} agents: registered through REST at ${agents.registrationsPerSecond.toFixed(0)}/s; ` +
      `RSS ${mb(agents.rssBeforeMb)} before, ${mb(agents.rssAfterMb)} after, ${mb(agents.rssRestartedMb)} after a restart`,
    `first start (creates the database) ${seconds(agents.createdInMs)}, stop ${seconds(agents.stoppedInMs)}, ` +
      `restart with ${agents.count} agents ${seconds(agents.restartedInMs)}`,
  );
  return lines.join('\n');
}

function ratio(rows, connections, name, over) {
  const find = (wanted) => rows.find((row) => row.name === wanted && row.connections === connections).perSecond;
  return find(name) / find(over);
}

function mb(value) {
  return value === undefined ? '?' : `${value.toFixed(0)} MB`;
}

function seconds(ms) {
  return `${(ms / 1_000).toFixed(2)} s`;
}
