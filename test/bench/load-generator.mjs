// The load generator, a process of its own: plain sockets and as little JavaScript as possible for each request, so
// that on a small machine it takes little from what is measured. Told by messages what to do:
// { port, path, body, connections, seconds } -> { requests, seconds, p50Ms, p99Ms, errors }
import { connect } from 'node:net';

const CRLF_CRLF = Buffer.from('\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

process.on('message', (job) => {
  run(job).then(
    (result) => process.send(result),
    (error) => process.send({ failure: error.message }),
  );
});
process.once('disconnect', () => process.exit());

async function run({ port, path, body, connections, seconds }) {
  const request = Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  const startedAt = performance.now();
  const endAt = startedAt + seconds * 1_000;
  const lanes = await Promise.all(Array.from({ length: connections }, () => lane(port, request, endAt)));
  const latencies = Float64Array.from(lanes.flatMap((one) => one.latencies)).toSorted();
  return {
    requests: latencies.length,
    seconds: (performance.now() - startedAt) / 1_000,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    errors: lanes.reduce((sum, one) => sum + one.errors, 0),
  };
}

/** One connection: a request, its reply, the next request. */
function lane(port, request, endAt) {
  return new Promise((resolve, reject) => {
    const latencies = [];
    let errors = 0;
    let sentAt = 0;
    let pending = Buffer.alloc(0);
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const send = () => {
      sentAt = performance.now();
      socket.write(request);
    };
    socket.setTimeout(10_000, () => socket.destroy(new Error('no reply within 10 s')));
    socket.once('connect', send);
    socket.once('error', reject);
    socket.once('close', () => resolve({ latencies, errors }));
    socket.on('data', (chunk) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const reply = readReply(pending);
      if (reply === undefined) return;
      pending = pending.subarray(reply.length);
      const now = performance.now();
      latencies.push(now - sentAt);
      // A JSON-RPC error comes with status 200.
      if (!reply.isOk) errors += 1;
      if (now < endAt) send();
      else socket.end();
    });
  });
}

/** Length and outcome of the reply that `bytes` start with; undefined while it is not whole. */
function readReply(bytes) {
  const headEnd = bytes.indexOf(CRLF_CRLF);
  if (headEnd < 0) return undefined;
  const head = bytes.latin1Slice(0, headEnd);
  const bodyStart = headEnd + 4;
  const declared = /\r\ncontent-length: *(\d+)/i.exec(head);
  let length;
  if (declared !== null) {
    length = bodyStart + Number(declared[1]);
    if (bytes.length < length) return undefined;
  } else {
    const last = bytes.indexOf(LAST_CHUNK, bodyStart);
    if (last < 0) return undefined;
    length = last + LAST_CHUNK.length;
  }
  return { length, isOk: head.startsWith('HTTP/1.1 200') && bytes.indexOf('"result"', bodyStart) >= 0 };
}

function percentile(sorted, share) {
  return sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
