import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError } from './config-error.js';
import { loadConfig } from './load-config.js';
import type { Environment } from './load-config.js';

function problemsOf(env: Environment, overrides: Environment = {}): readonly string[] {
  try {
    loadConfig(env, overrides);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('loadConfig', () => {
  it('has the documented defaults', () => {
    const { config } = loadConfig({});
    expect(config).toMatchObject({
      profile: 'patchbay',
      services: ['registry', 'liveness', 'dispatch', 'gateway'],
      httpHost: 'loopback',
      httpPort: 9090,
      metricsPort: 8080,
      grpcPort: 9091,
      dataDir: resolve('.patchbay'),
      publicUrl: null,
      name: 'patchbay',
      metricsPrefix: 'patchbay',
      a2aEnabled: true,
      agentTtlSeconds: 300,
      sweepIntervalSeconds: 60,
      maxAgents: 0,
      agentConcurrency: 100,
      defaultTimeoutSeconds: 30,
      maxTimeoutSeconds: 3600,
      streamIdleSeconds: 900,
      keepaliveSeconds: 30,
      drainSeconds: 10,
      drainDelaySeconds: 0,
      maxResponseBytes: 10_485_760,
      maxRequestBytes: 10_485_760,
      maxBufferedBytes: 268_435_456,
      maxCardBytes: 262_144,
      trustProxy: [],
      logLevel: 'info',
      natsUrl: null,
      databaseUrl: null,
      localFirst: true,
    });
    expect(config.nodeId).toMatch(/^[a-z0-9-]{1,58}-[a-z0-9]{4}$/);
  });

  it('cannot be changed afterwards', () => {
    expect(Object.isFrozen(loadConfig({}).config)).toBe(true);
  });

  it('takes empty and blank values as not set', () => {
    const { config, origins } = loadConfig({ PATCHBAY_HTTP_PORT: '', PATCHBAY_NAME: '  ' });
    expect(config.httpPort).toBe(9090);
    expect(config.name).toBe('patchbay');
    expect(origins.httpPort.origin).toBe('default');
  });

  it('reports every problem at once, one line each, with variable, rule and value', () => {
    const problems = problemsOf({
      PATCHBAY_HTTP_PORT: '99999',
      PATCHBAY_LOCAL_FIRST: 'perhaps',
      PATCHBAY_LOG_LEVEL: 'loud',
      PATCHBAY_HTPP_HOST: '0.0.0.0',
    });
    expect(problems).toEqual([
      'PATCHBAY_HTTP_PORT must be a port from 0 to 65535 (0 takes a free one); got "99999"',
      'PATCHBAY_LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent; got "loud"',
      'PATCHBAY_LOCAL_FIRST must be true, false, 1, 0, yes or no; got "perhaps"',
      'PATCHBAY_HTPP_HOST is not a setting; did you mean PATCHBAY_HTTP_HOST?',
    ]);
  });

  it.each(['-1', '1.5', '9090x', '0x10', 'Infinity', '１２'])('refuses the port %s', (text) => {
    expect(problemsOf({ PATCHBAY_HTTP_PORT: text })).toHaveLength(1);
  });

  it.each([
    ['true', true],
    ['YES', true],
    ['1', true],
    ['false', false],
    ['No', false],
    ['0', false],
  ])('reads the switch %s', (text, value) => {
    expect(loadConfig({ PATCHBAY_LOCAL_FIRST: text }).config.localFirst).toBe(value);
  });

  it.each(['__proto__', 'constructor', 'toString'])('refuses the switch %s', (text) => {
    expect(problemsOf({ PATCHBAY_LOCAL_FIRST: text })).toHaveLength(1);
  });

  it('goes by the names of the kubemq profile, and explicit settings win', () => {
    const { config, origins } = loadConfig({ PATCHBAY_PROFILE: 'kubemq', PATCHBAY_NAME: 'mine' });
    expect(config.name).toBe('mine');
    expect(config.metricsPrefix).toBe('kubemq');
    expect(origins.metricsPrefix.origin).toBe('profile');
    expect(origins.name.origin).toBe('environment');
  });

  it("honours KubeMQ's variables, and our own port wins", () => {
    const kubemq = { KUBEMQ_A2A_ENABLE: 'false', KUBEMQ_A2A_PORT: '7000' };
    expect(loadConfig(kubemq).config).toMatchObject({ a2aEnabled: false, httpPort: 7000 });
    expect(loadConfig(kubemq).origins.httpPort).toEqual({ origin: 'environment', variable: 'KUBEMQ_A2A_PORT' });
    expect(loadConfig({ ...kubemq, PATCHBAY_HTTP_PORT: '7001' }).config.httpPort).toBe(7001);
    expect(problemsOf({ KUBEMQ_A2A_PORT: 'x' })[0]).toMatch(/^KUBEMQ_A2A_PORT must be/);
  });

  it('lets the command line win', () => {
    const { config, origins } = loadConfig(
      { PATCHBAY_SERVICES: 'registry,liveness', PATCHBAY_NATS_URL: 'nats://localhost' },
      { PATCHBAY_SERVICES: 'gateway,dispatch' },
    );
    expect(config.services).toEqual(['dispatch', 'gateway']);
    expect(origins.services.origin).toBe('command line');
  });

  it('refuses some of the services without a bus between processes', () => {
    expect(problemsOf({ PATCHBAY_SERVICES: 'gateway' })[0]).toMatch(/PATCHBAY_NATS_URL is not set/);
    expect(problemsOf({ PATCHBAY_SERVICES: 'gateway,dispatch,liveness,registry' })).toEqual([]);
  });

  it('refuses registry or liveness alone on a database that nobody else can reach', () => {
    const nats = { PATCHBAY_NATS_URL: 'nats://localhost' };
    for (const service of ['registry', 'liveness']) {
      const services = `gateway,${service}`;
      expect(problemsOf({ ...nats, PATCHBAY_SERVICES: services })[0]).toMatch(/^PATCHBAY_DATABASE_URL must be set/);
      const shared = { ...nats, PATCHBAY_SERVICES: services, PATCHBAY_DATABASE_URL: 'postgres://localhost/x' };
      expect(problemsOf(shared)).toEqual([]);
    }
    expect(problemsOf({ ...nats, PATCHBAY_SERVICES: 'registry,liveness' })).toEqual([]);
    expect(problemsOf({ ...nats, PATCHBAY_SERVICES: 'gateway,dispatch' })).toEqual([]);
  });

  it('ignores what Kubernetes injects beside services named patchbay and patchbay-…', () => {
    const { config } = loadConfig({
      PATCHBAY_SERVICE_HOST: '10.0.0.1',
      PATCHBAY_SERVICE_PORT: '9090',
      PATCHBAY_SERVICE_PORT_HTTP: '9090',
      PATCHBAY_PORT: 'tcp://10.0.0.1:9090',
      PATCHBAY_PORT_9090_TCP: 'tcp://10.0.0.1:9090',
      PATCHBAY_PORT_9090_TCP_ADDR: '10.0.0.1',
      PATCHBAY_METRICS_PORT: 'tcp://10.0.0.2:8080',
      PATCHBAY_METRICS_SERVICE_HOST: '10.0.0.2',
      PATCHBAY_POSTGRES_PORT: 'tcp://10.0.0.3:5432',
      PATCHBAY_POSTGRES_PORT_5432_TCP_PROTO: 'tcp',
    });
    expect(config.metricsPort).toBe(8080);
  });

  it('takes a misspelt port for what it is', () => {
    expect(problemsOf({ PATCHBAY_HTTTP_PORT: '9090' })).toEqual([
      'PATCHBAY_HTTTP_PORT is not a setting; did you mean PATCHBAY_HTTP_PORT?',
    ]);
  });

  it('names the setting of which only the end is missing', () => {
    expect(problemsOf({ PATCHBAY_AGENT_TTL: '5' })[0]).toContain('did you mean PATCHBAY_AGENT_TTL_SECONDS?');
  });

  it('compares settings with each other', () => {
    expect(problemsOf({ PATCHBAY_DEFAULT_TIMEOUT_SECONDS: '60', PATCHBAY_MAX_TIMEOUT_SECONDS: '50' })).toHaveLength(1);
    expect(problemsOf({ PATCHBAY_HTTP_PORT: '8000', PATCHBAY_METRICS_PORT: '8000' })).toHaveLength(1);
    expect(problemsOf({ PATCHBAY_HTTP_PORT: '8080' })).toEqual([]);
  });

  it('reads networks', () => {
    expect(loadConfig({ PATCHBAY_TRUST_PROXY: '10.0.0.0/8, ::1' }).config.trustProxy).toEqual(['10.0.0.0/8', '::1']);
    expect(loadConfig({ PATCHBAY_TRUST_PROXY: 'none' }).config.trustProxy).toEqual([]);
    for (const wrong of ['10.0.0.0/33', 'everyone', '10.0.0.0/8/8', '/8']) {
      expect(problemsOf({ PATCHBAY_TRUST_PROXY: wrong })).toHaveLength(1);
    }
  });

  it('reads URLs', () => {
    expect(loadConfig({ PATCHBAY_PUBLIC_URL: 'https://gw.example/base/' }).config.publicUrl).toBe(
      'https://gw.example/base',
    );
    for (const wrong of ['gw.example', 'ftp://gw.example', 'https://u:p@gw.example', 'https://gw.example/?a=b']) {
      expect(problemsOf({ PATCHBAY_PUBLIC_URL: wrong })).toHaveLength(1);
    }
    expect(loadConfig({ PATCHBAY_NATS_URL: 'nats://a:4222,tls://b' }).config.natsUrl).toEqual([
      'nats://a:4222',
      'tls://b',
    ]);
  });

  it('never shows credentials in a problem', () => {
    const [line] = problemsOf({ PATCHBAY_DATABASE_URL: 'mysql://root:hunter2@db/x?password=hunter2' });
    expect(line).toContain('mysql://***@db/x?password=***');
    expect(line).not.toContain('hunter2');
  });
});
