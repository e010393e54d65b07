import { expect, it } from 'vitest';
import { destinationTemplate } from './destination-template.js';
import { Subjects } from './subjects.js';

it('names the token that varies', () => {
  const subjects = new Subjects('p');
  expect(destinationTemplate(subjects.agent('echo-01'))).toBe('a2a.{agent_id}');
  expect(destinationTemplate(subjects.dispatchNode('n1'))).toBe('p.dispatch.node.{node_id}');
  expect(destinationTemplate(subjects.flushBeats('n1'))).toBe('p.liveness.flush.{node_id}');
  expect(destinationTemplate(subjects.acks('n1'))).toBe('p.acks.{node_id}');
  expect(destinationTemplate(subjects.event('registered', 'echo-01'))).toBe('p.events.registered.{agent_id}');
  expect(destinationTemplate(subjects.heartbeat)).toBe('p.liveness.heartbeat');
  expect(destinationTemplate(subjects.registry('register'))).toBe('p.registry.register');
});
