// The near end of the bare NATS hop: node:http in front, a request over NATS behind; no checks, no limits. The last
// argument says how: `request` is the client's own `nc.request()`, `multiplexed` one wildcard inbox and a map.
import { createServer } from 'node:http';
import { connect, nuid } from 'nats';

const TIMEOUT_MS = 10_000;
const [, , natsUrl, subject, way] = process.argv;
const nats = await connect({ servers: natsUrl });
const ask = way === 'multiplexed' ? multiplexed() : withRequest;

async function withRequest(body) {
  return (await nats.request(subject, body, { timeout: TIMEOUT_MS })).data;
}

/** No timer and no race of promises for each call: one timer gives up what is overdue. */
function multiplexed() {
  const inbox = `_INBOX.${nuid.next()}`;
  const waiting = new Map();
  let last = 0;
  nats.subscribe(`${inbox}.*`, {
    callback: (error, message) => {
      if (error !== null) return;
      const token = message.subject.slice(inbox.length + 1);
      waiting.get(token)?.resolve(message.data);
      waiting.delete(token);
    },
  });
  setInterval(() => {
    const overdueMs = performance.now() - TIMEOUT_MS;
    for (const [token, { sentAtMs, reject }] of waiting) {
      if (sentAtMs > overdueMs) break;
      waiting.delete(token);
      reject(new Error('no reply'));
    }
  }, 1_000).unref();
  return (body) =>
    new Promise((resolve, reject) => {
      const token = (++last).toString(36);
      waiting.set(token, { sentAtMs: performance.now(), resolve, reject });
      nats.publish(subject, body, { reply: `${inbox}.${token}` });
    });
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.once('end', () => {
    answer(Buffer.concat(chunks), response).catch(() => response.destroy());
  });
});

async function answer(body, response) {
  const bytes = await ask(body);
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': bytes.length });
  response.end(bytes);
}

server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }));
process.once('disconnect', () => process.exit());
