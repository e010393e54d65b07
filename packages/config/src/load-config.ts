import { hostname } from 'node:os';
import { ConfigError } from './config-error.js';
import { maskSecret } from './mask-secret.js';
import { SERVICES, SETTINGS } from './settings.js';
import type { SettingName } from './settings.js';
import type { DefaultContext, Setting } from './setting.js';
import { isInjected, unknownVariables } from './unknown-variables.js';

type ValueOf<S> = S extends Setting<infer T, infer D> ? T | D : never;

/** All settings, validated and frozen. Times are in seconds, sizes in bytes, as the names say. */
export type Config = { readonly [N in SettingName]: ValueOf<(typeof SETTINGS)[N]> };

/** Where a value came from. */
export type Origin = 'default' | 'profile' | 'environment' | 'command line';

/** The outcome of {@link loadConfig}. */
export interface LoadedConfig {
  readonly config: Config;
  /** For each setting, where its value came from and which variable said it. */
  readonly origins: Readonly<Record<SettingName, { readonly origin: Origin; readonly variable: string }>>;
}

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads all settings. This is the only reader of the environment in the product.
 *
 * @param env Default `process.env`. Empty values count as not set.
 * @param overrides Values of the command line by variable; they win.
 * @throws ConfigError that lists every problem, each in one line.
 */
export function loadConfig(env: Environment = process.env, overrides: Environment = {}): LoadedConfig {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  const origins: Record<string, { origin: Origin; variable: string }> = {};
  let context: DefaultContext = { profile: 'patchbay', hostName: hostname() };

  // The table starts with the profile, on which defaults depend.
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const row = SETTINGS[name] as Setting<unknown, unknown>;
    const given = findGiven(row, env, overrides);
    const value = given === undefined ? defaultOf(row, context) : row.kind.parse(given.text);
    if (given !== undefined && value === undefined) problems.push(problem(row, given.variable, given.text));
    values[name] = value;
    const fallbackOrigin = dependsOnProfile(row, context) ? 'profile' : 'default';
    origins[name] = { origin: given?.origin ?? fallbackOrigin, variable: given?.variable ?? row.variable };
    if (name === 'profile' && value === 'kubemq') context = { ...context, profile: 'kubemq' };
  }

  // Sound only when every value was read; the checks that follow compare values with each other.
  const config = values as Config;
  if (problems.length === 0) problems.push(...contradictions(config, origins.metricsPort?.origin !== 'default'));
  const known = Object.values(SETTINGS).map((row) => row.variable);
  problems.push(...unknownVariables(env, known));
  if (problems.length > 0) throw new ConfigError(problems);
  return {
    config: Object.freeze(config),
    origins: Object.freeze(origins) as LoadedConfig['origins'],
  };
}

interface Given {
  readonly text: string;
  readonly origin: Origin;
  readonly variable: string;
}

function findGiven(row: Setting<unknown, unknown>, env: Environment, overrides: Environment): Given | undefined {
  const override = overrides[row.variable]?.trim();
  if (override !== undefined && override !== '') {
    return { text: override, origin: 'command line', variable: row.variable };
  }
  for (const variable of [row.variable, ...(row.alias === undefined ? [] : [row.alias])]) {
    const text = env[variable]?.trim();
    if (text === undefined || text === '' || isInjected(variable, text, true)) continue;
    return { text, origin: 'environment', variable };
  }
  return undefined;
}

function defaultOf(row: Setting<unknown, unknown>, context: DefaultContext): unknown {
  return typeof row.fallback === 'function' ? (row.fallback as (c: DefaultContext) => unknown)(context) : row.fallback;
}

function dependsOnProfile(row: Setting<unknown, unknown>, context: DefaultContext): boolean {
  return context.profile !== 'patchbay' && defaultOf(row, context) === context.profile;
}

function problem(row: Setting<unknown, unknown>, variable: string, text: string): string {
  const shown = row.isSecret === true ? maskSecret(text) : text;
  return `${variable} must be ${row.kind.rule}; got ${JSON.stringify(shown.length > 100 ? `${shown.slice(0, 100)}…` : shown)}`;
}

/** Rules that hold between settings. */
function contradictions(config: Config, isMetricsPortSet: boolean): string[] {
  const found: string[] = [];
  if (config.defaultTimeoutSeconds > config.maxTimeoutSeconds) {
    found.push(
      `PATCHBAY_DEFAULT_TIMEOUT_SECONDS must not be over PATCHBAY_MAX_TIMEOUT_SECONDS (${config.maxTimeoutSeconds}); got "${config.defaultTimeoutSeconds}"`,
    );
  }
  // Not set, it moves out of the way by itself.
  if (isMetricsPortSet && config.httpPort !== 0 && config.httpPort === config.metricsPort) {
    found.push(`PATCHBAY_METRICS_PORT must differ from PATCHBAY_HTTP_PORT; got "${config.metricsPort}" for both`);
  }
  if (config.natsUrl === null && config.services.length < SERVICES.length) {
    found.push(
      `PATCHBAY_SERVICES must be all services while PATCHBAY_NATS_URL is not set, for nothing else connects processes; got "${config.services.join(',')}"`,
    );
  }
  const writers = config.services.filter((service) => service === 'registry' || service === 'liveness');
  if (writers.length === 1 && config.databaseUrl === null) {
    found.push(
      `PATCHBAY_DATABASE_URL must be set for a process that runs ${writers.join()} alone: registry and liveness share a database`,
    );
  }
  return found;
}
