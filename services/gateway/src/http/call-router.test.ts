import { NoRespondersError, RemoteError, Subjects } from '@patchbay/bus';
import type { Headers } from '@patchbay/bus';
import { PatchbayError } from '@patchbay/core';
import type { ErrorCode } from '@patchbay/core';
import { beforeEach, describe, expect, it } from 'vitest';
import { CallRouter } from './call-router.js';
import type { CallRouterOptions } from './call-router.js';
import { DispatcherRetry } from './dispatcher-retry.js';

const subjects = new Subjects();
const QUEUE = subjects.agent('busy');
const NOTHING = new Uint8Array(0);

/** What each subject answers, in turn; the last answer stays. Subjects that are not here have no responders. */
let answers: Record<string, (string | Error)[]>;
let asked: { readonly subject: string; readonly headers: Headers; readonly timeoutMs: number }[];
let isKnown: boolean;
let isImpaired: boolean;
let isUp: boolean;
let live: string[];

beforeEach(() => {
  answers = {};
  asked = [];
  isKnown = true;
  isImpaired = false;
  isUp = true;
  live = ['a', 'b', 'c'];
});

function refusal(nodeId: string, code: ErrorCode = 'concurrency_exceeded'): RemoteError {
  return new RemoteError(code, code, NOTHING, { 'Patchbay-Node': nodeId });
}

function at(nodeId: string): string {
  return subjects.dispatchNode(nodeId);
}

function route(options: Partial<CallRouterOptions> = {}, signal = new AbortController().signal): Promise<string> {
  const directory = { get: () => (isKnown ? ({} as never) : undefined) };
  const router = new CallRouter({
    bus: {
      get isUp() {
        return isUp;
      },
    },
    subjects,
    directory,
    retry: new DispatcherRetry({ directory, subjects, registry: { lookup: () => Promise.resolve(null) } }),
    nodes: {
      get isImpaired() {
        return isImpaired;
      },
      inTurn: () => [...live],
      mostFreeFirst: () => [...live],
      noteLoss: () => {
        isImpaired = true;
      },
    },
    isServedHere: false,
    ...options,
  });
  const call = { agentId: 'busy', headers: { 'X-Name': 'value' }, timeoutMs: 5_000, signal };
  return router.run(call, (subject, headers, timeoutMs) => {
    asked.push({ subject, headers, timeoutMs });
    const left = answers[subject] ?? [new NoRespondersError(subject)];
    const answer = (left.length > 1 ? left.shift() : left[0]) ?? '';
    return typeof answer === 'string' ? Promise.resolve(answer) : Promise.reject(answer);
  });
}

function subjectsAsked(): string[] {
  return asked.map(({ subject }) => subject);
}

describe('CallRouter', () => {
  it('asks the queue group, with the headers as they are', async () => {
    answers = { [QUEUE]: ['done'] };
    expect(await route()).toBe('done');
    expect(asked).toEqual([{ subject: QUEUE, headers: { 'X-Name': 'value' }, timeoutMs: 5_000 }]);
  });

  it('does not repeat a call that nobody answered, and asks nodes by name from then on', async () => {
    answers = { [QUEUE]: [new PatchbayError('node_lost', 'gone')], [at('a')]: ['done'] };
    await expect(route()).rejects.toMatchObject({ code: 'node_lost' });
    expect(subjectsAsked()).toEqual([QUEUE]);
    expect(await route()).toBe('done');
    expect(subjectsAsked()).toEqual([QUEUE, at('a')]);
  });

  it('asks the other nodes when one has no slot, each once and never the one that refused', async () => {
    answers = { [QUEUE]: [refusal('b')], [at('a')]: [refusal('a')], [at('c')]: ['done'] };
    expect(await route()).toBe('done');
    expect(subjectsAsked()).toEqual([QUEUE, at('a'), at('c')]);
    expect(asked[1]?.headers).toEqual({ 'X-Name': 'value', 'Patchbay-Agent': 'busy' });
    expect(asked[2]?.timeoutMs).toBeLessThan(5_000);
  });

  it('refuses when all refuse, and passes over nodes that are not there', async () => {
    answers = { [QUEUE]: [refusal('b')], [at('c')]: [refusal('c')] };
    await expect(route()).rejects.toMatchObject({ code: 'concurrency_exceeded', headers: { 'Patchbay-Node': 'b' } });
    expect(subjectsAsked()).toEqual([QUEUE, at('a'), at('c')]);
  });

  it('asks another node when one drains; that the agent is busy weighs more than that', async () => {
    answers = { [QUEUE]: [refusal('a', 'draining')], [at('b')]: ['done'] };
    expect(await route()).toBe('done');
    answers = { [QUEUE]: [refusal('a', 'draining')], [at('b')]: [refusal('b')], [at('c')]: [refusal('c', 'draining')] };
    await expect(route()).rejects.toMatchObject({ code: 'concurrency_exceeded' });
  });

  it.each<[string, Error]>([
    ['a call that was cut while the node drained', new RemoteError('draining', 'cut', NOTHING)],
    ['a limit that is not ours', new RemoteError('concurrency_exceeded', 'full', NOTHING)],
    ['an agent that failed', new RemoteError('agent_http_error', '500', NOTHING, { 'Patchbay-Node': 'a' })],
    ['a node that was lost', new PatchbayError('node_lost', 'lost')],
  ])('does not try again after %s', async (_what, error) => {
    answers = { [QUEUE]: [error], [at('a')]: ['done'], [at('b')]: ['done'], [at('c')]: ['done'] };
    await expect(route()).rejects.toBe(error);
    isImpaired = false;
    answers = { [QUEUE]: [refusal('a')], [at('b')]: [error], [at('c')]: ['done'] };
    await expect(route()).rejects.toBe(error);
    expect(subjectsAsked()).toEqual([QUEUE, QUEUE, at('b')]);
  });

  it('keeps the refusal when there are no others, or the link is down', async () => {
    answers = { [QUEUE]: [refusal('a')], [at('b')]: ['done'] };
    await expect(route({ nodes: undefined })).rejects.toMatchObject({ code: 'concurrency_exceeded' });
    isUp = false;
    await expect(route()).rejects.toMatchObject({ code: 'concurrency_exceeded' });
    expect(subjectsAsked()).toEqual([QUEUE, QUEUE]);
  });

  it('tries again while nobody serves a known agent, and spills from there', async () => {
    answers = {
      [QUEUE]: [new NoRespondersError(QUEUE), new NoRespondersError(QUEUE), refusal('a')],
      [at('b')]: ['done'],
    };
    expect(await route()).toBe('done');
    expect(subjectsAsked()).toEqual([QUEUE, QUEUE, QUEUE, at('b')]);
  });

  it('says that an agent does not exist when the registry does not know it', async () => {
    isKnown = false;
    await expect(route()).rejects.toMatchObject({ code: 'agent_not_found' });
    expect(subjectsAsked()).toEqual([QUEUE]);
  });

  describe('while a node is silent', () => {
    beforeEach(() => {
      isImpaired = true;
      live = ['b', 'a'];
    });

    it('addresses the others directly', async () => {
      answers = { [QUEUE]: ['swallowed'], [at('b')]: ['done'] };
      expect(await route()).toBe('done');
      expect(subjectsAsked()).toEqual([at('b')]);
    });

    it('goes on to the next when one refuses, lags behind or is not there', async () => {
      for (const answer of [
        refusal('b'),
        new RemoteError('agent_not_found', 'busy', NOTHING),
        new NoRespondersError('b'),
      ]) {
        asked = [];
        answers = { [QUEUE]: ['swallowed'], [at('b')]: [answer], [at('a')]: ['done'] };
        expect(await route()).toBe('done');
        expect(subjectsAsked()).toEqual([at('b'), at('a')]);
      }
    });

    it('refuses when all refuse, without asking anybody twice', async () => {
      answers = { [QUEUE]: ['swallowed'], [at('b')]: [refusal('b')], [at('a')]: [refusal('a')] };
      await expect(route()).rejects.toMatchObject({ code: 'concurrency_exceeded' });
      expect(subjectsAsked()).toEqual([at('b'), at('a')]);
    });

    it('asks the queue group when none of the others is there', async () => {
      answers = { [QUEUE]: ['done'] };
      expect(await route()).toBe('done');
      expect(subjectsAsked()).toEqual([at('b'), at('a'), QUEUE]);
    });

    it('serves agents that it knows in its own process', async () => {
      answers = { [QUEUE]: ['done'], [at('b')]: ['direct'] };
      expect(await route({ isServedHere: true })).toBe('done');
      isKnown = false;
      expect(await route({ isServedHere: true })).toBe('direct');
    });
  });
});
