// Sends bad requests to the front at `argv[2]` from a process of its own, `argv[3]` of them, 10 at a time, and prints
// how each kind ended as JSON: an HTTP status, `closed` or `open` (which would be a fault).
import { connect } from 'node:net';

const port = Number(new URL(process.argv[2]).port);
const count = Number(process.argv[3]);
/** One in so many is 10 MB; 0 = none. */
const rareEvery = Number(process.argv[4] ?? 50);
const PARALLEL = 10;
const PATIENCE_MS = 15_000;

const post = (path, body, headers = `Content-Length: ${Buffer.byteLength(body)}\r\n`) => [
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}\r\n`,
  body,
];
const call = (body) => post('/a2a/echo', body);
const huge = 'x'.repeat(10_000_000);
const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;

/** Most are small. */
const KINDS = {
  'bad json': () => call('{bad'),
  'deep nesting': () => call('['.repeat(100_000)),
  'deep objects': () => call('{"a":'.repeat(100_000)),
  'own __proto__': () => call('{"__proto__":{"x":1}}'),
  'duplicate keys': () => call('{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}'),
  'lone surrogate': () => call('{"jsonrpc":"2.0","id":1,"method":"\\ud800"'),
  'invalid utf-8': () => call(Buffer.from([0x7b, 0xff, 0xfe, 0x7d])),
  'not http': () => ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', '\r\n\r\n'],
  'bad length': () => post('/a2a/echo', 'x', 'Content-Length: -5\r\n'),
  'two framings': () => post('/a2a/echo', '0\r\n\r\n', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'),
  'bad chunk': () => post('/a2a/echo', 'zz\r\n', 'Transfer-Encoding: chunked\r\n'),
  'headers of 64 KB': () => [`GET /agents HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(65_536)}\r\n\r\n`, ''],
  'long target': () => [`GET /agents/${'a'.repeat(60_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, ''],
  'no host': () => ['GET /agents HTTP/1.1\r\n\r\n', ''],
  'bad id': () => post('/a2a/a%00b', '{}'),
  'large card': () => post('/agents/register', `{"agent_id":"${'x'.repeat(300_000)}"}`),
  'deep card': () => post('/agents/deregister', '['.repeat(100_000)),
  'declared 1 TB': () => post('/a2a/echo', 'x', 'Content-Length: 1099511627776\r\n'),
  'declared 1 TB card': () => post('/agents/register', 'x', 'Content-Length: 1099511627776\r\n'),
};
const RARE = {
  'string of 10 MB': () => call(`{"jsonrpc":"1.0","id":"${huge}"}`),
  'chunked over 10 MB': () => post('/a2a/echo', chunk.repeat(170), 'Transfer-Encoding: chunked\r\n'),
};

function send(parts) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    let text = '';
    const finish = (outcome) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const timer = setTimeout(() => finish('open'), PATIENCE_MS);
    socket.on('connect', () => {
      for (const part of parts) socket.write(part);
    });
    socket.on('data', (data) => {
      text += data;
      const [, status, code] = /^HTTP\/1\.1 (\d{3})[\s\S]*?\r\n\r\n(?:.*"code":(-\d+))?/.exec(text) ?? [];
      if (status !== undefined && text.includes('}')) finish(code === undefined ? status : `${status} ${code}`);
    });
    socket.on('error', () => finish(text === '' ? 'closed' : (/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 'closed')));
    socket.on('close', () => finish('closed'));
  });
}

const outcomes = {};
const kinds = Object.entries(KINDS);
const rare = Object.entries(RARE);
let next = 0;
await Promise.all(
  Array.from({ length: PARALLEL }, async () => {
    while (next < count) {
      const at = next++;
      const [name, make] =
        rareEvery > 0 && at % rareEvery === 0
          ? rare[Math.floor(at / rareEvery) % rare.length]
          : kinds[at % kinds.length];
      const outcome = await send(make());
      outcomes[name] ??= {};
      outcomes[name][outcome] = (outcomes[name][outcome] ?? 0) + 1;
    }
  }),
);
console.log(JSON.stringify(outcomes));
