/** One server-sent event. */
export interface SseEvent {
  readonly name?: string | undefined;
  readonly id?: string | undefined;
  /** Several lines become several `data:` lines. */
  readonly data: Uint8Array;
}

const DATA = Buffer.from('data: ');
const END = Buffer.from('\n\n');
const LF = 0x0a;
const CR = 0x0d;

/** A comment that shows that the stream lives. Clients match it by the letter. */
export const KEEPALIVE = Buffer.from(': keepalive\n\n');

/**
 * An event as it goes over the wire: one space after each colon, LF only, complete, so that it can go out in one write
 * (clients exist that parse every chunk on its own). Source: WHATWG HTML, section 9.2.6.
 */
export function encodeSseEvent(event: SseEvent): Buffer {
  const { name, id, data } = event;
  const head = `${name === undefined ? '' : `event: ${name}\n`}${id === undefined ? '' : `id: ${id}\n`}`;
  const lines = data.includes(LF) || data.includes(CR) ? splitLines(data) : data;
  return Buffer.concat(head === '' ? [DATA, lines, END] : [Buffer.from(head), DATA, lines, END]);
}

function splitLines(data: Uint8Array): Buffer {
  return Buffer.from(
    Buffer.from(data.buffer, data.byteOffset, data.length)
      .toString()
      .replace(/\r\n|\r|\n/g, '\ndata: '),
  );
}
