import { expect, it } from 'vitest';
import { defaultNodeId } from './default-node-id.js';

it.each([
  ['Build-Host.example.com', /^build-host-example-com-[a-z0-9]{4}$/],
  ['сервер', /^node-[a-z0-9]{4}$/],
  ['x'.repeat(200), /^x{58}-[a-z0-9]{4}$/],
])('makes a legal node id of the host name %s', (hostName, expected) => {
  expect(defaultNodeId(hostName)).toMatch(expected);
});
