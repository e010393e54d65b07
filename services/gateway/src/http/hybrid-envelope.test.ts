import { describe, expect, it } from 'vitest';
import { isTaskEvent, isTerminalTaskEvent, wrapTaskData, wrapTaskPayload } from './hybrid-envelope.js';

const wrap = (name: string, data: string): string | undefined => wrapTaskData(name, Buffer.from(data))?.toString();

describe('wrapTaskData', () => {
  it.each([
    [
      'task.status',
      '{"type":"status_update","payload":{"status":"working","progress":1}}',
      '{"type":"status_update","payload":{"status":"working","progress":1,"type":"status_update","payload":{"status":"working","progress":1}}}',
    ],
    [
      'task.artifact',
      '{"type":"x","payload":{"type":"mine"}}',
      '{"type":"artifact","payload":{"type":"artifact","payload":{"type":"mine"}}}',
    ],
    [
      'task.done',
      '{"payload":{"payload":{"deep":1}}}',
      '{"type":"done","payload":{"payload":{"payload":{"deep":1}},"type":"done"}}',
    ],
    ['task.error', '{"code":1}', '{"type":"error","payload":{"code":1,"type":"error","payload":{"code":1}}}'],
    ['task.custom', '{"payload":null}', '{"type":"custom","payload":{"type":"custom","payload":null}}'],
    ['task.status', '[1]', '{"type":"status_update","payload":{"type":"status_update","payload":[1]}}'],
    [
      'task.status',
      '{"jsonrpc":"2.0","method":"x"}',
      '{"type":"status_update","payload":{"jsonrpc":"2.0","method":"x","type":"status_update","payload":{"jsonrpc":"2.0","method":"x"}}}',
    ],
    [
      'task.done',
      '{"payload":{"n":12345678901234567890,"f":1.0,"\\u0074ype":"mine"}}',
      '{"type":"done","payload":{"n":12345678901234567890,"f":1.0,"type":"done","payload":{"n":12345678901234567890,"f":1.0,"\\u0074ype":"mine"}}}',
    ],
    [
      'task.done',
      '{\n  "payload": {\r\n    "a": "b\\n"\n  }\n}',
      '{"type":"done","payload":{"a":"b\\n","type":"done","payload":{    "a": "b\\n"  }}}',
    ],
  ])('%s %s', (name, data, expected) => {
    expect(wrap(name, data)).toBe(expected);
  });

  it.each(['', 'text', '{bad', '{"jsonrpc":"2.0","id":1,"result":{}}', '{"jsonrpc":"2.0","id":1,"error":{}}'])(
    'leaves %j alone',
    (data) => {
      expect(wrap('task.status', data)).toBeUndefined();
    },
  );

  it('keeps __proto__ a plain member', () => {
    const text = wrapTaskPayload('task.status', JSON.parse('{"__proto__":{"x":1}}')).toString();
    expect(text).toContain('"__proto__":{"x":1}');
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });
});

it('knows KubeMQ’s events by name', () => {
  expect([undefined, 'task', 'message', 'task.', 'task.x'].map(isTaskEvent)).toEqual([false, false, false, true, true]);
  expect(['task.done', 'task.error', 'task.status'].map(isTerminalTaskEvent)).toEqual([true, true, false]);
});
