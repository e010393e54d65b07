import { expect, it } from 'vitest';
import { describeConfig, describeSettings } from './describe-config.js';
import { loadConfig } from './load-config.js';

it('shows every setting with its value and where it came from, credentials masked', () => {
  const lines = describeConfig(
    loadConfig({
      KUBEMQ_A2A_PORT: '7000',
      PATCHBAY_DATABASE_URL: 'postgres://user:12,hunter2@db:5432/patchbay',
      PATCHBAY_NATS_URL: 'nats://hunter2@a:4222,nats://b:4222',
    }),
  );
  expect(lines).toHaveLength(describeSettings().length);
  expect(lines).toContainEqual({
    variable: 'PATCHBAY_HTTP_PORT',
    value: '7000',
    origin: 'environment (KUBEMQ_A2A_PORT)',
  });
  expect(lines).toContainEqual({
    variable: 'PATCHBAY_DATABASE_URL',
    value: 'postgres://***@db:5432/patchbay',
    origin: 'environment',
  });
  expect(lines).toContainEqual({
    variable: 'PATCHBAY_NATS_URL',
    value: 'nats://***@a:4222,nats://b:4222',
    origin: 'environment',
  });
  expect(JSON.stringify(lines)).not.toContain('hunter2');
});

it('documents every setting in words', () => {
  for (const { variable, fallback, rule, about } of describeSettings()) {
    expect(variable).toMatch(/^(PATCHBAY|KUBEMQ)_[A-Z0-9_]+$/);
    expect(fallback).not.toBe('');
    expect(rule).not.toBe('');
    expect(about).toMatch(/\.$/);
  }
});
