// The far end of the bare NATS hop: takes calls off a queue group and forwards them with undici `request()`.
import { connect } from 'nats';
import { Pool } from 'undici';

const [, , natsUrl, subject, agentUrl] = process.argv;
const pool = new Pool(new URL(agentUrl).origin, { connections: null });
const nats = await connect({ servers: natsUrl });

async function forward(message) {
  try {
    const reply = await pool.request({
      path: '/',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: message.data,
    });
    message.respond(Buffer.from(await reply.body.arrayBuffer()));
  } catch {
    // Left without an answer: the caller times out, and the run fails.
  }
}

nats.subscribe(subject, {
  queue: 'bare',
  callback: (error, message) => {
    if (error === null) void forward(message);
  },
});

await nats.flush();
process.send?.({ port: 0 });
process.once('disconnect', () => process.exit());
