import { maskSecret } from './mask-secret.js';
import { SETTINGS } from './settings.js';
import type { SettingName } from './settings.js';
import type { LoadedConfig } from './load-config.js';
import type { Setting } from './setting.js';

/** A setting with its value, as people read it. */
export interface ConfigLine {
  readonly variable: string;
  /** As one would write it, credentials masked; empty when there is none. */
  readonly value: string;
  /** `default`, `profile`, `environment`, `command line`; names the variable where it is another one. */
  readonly origin: string;
}

/** All settings with their values, in the order of the table. */
export function describeConfig(loaded: LoadedConfig): ConfigLine[] {
  return rows().map(([name, row]) => {
    const { origin, variable } = loaded.origins[name];
    const value = loaded.config[name];
    const text = value === null ? '' : row.kind.format(value);
    return {
      variable: row.variable,
      value: row.isSecret === true && text !== '' ? maskSecret(text) : text,
      origin: variable === row.variable ? origin : `${origin} (${variable})`,
    };
  });
}

/** A row of the settings' documentation. */
export interface SettingLine {
  readonly variable: string;
  /** In words where it is computed. */
  readonly fallback: string;
  /** What is allowed. */
  readonly rule: string;
  readonly about: string;
}

/** All settings as documentation, in the order of the table. */
export function describeSettings(): SettingLine[] {
  return rows().map(([, row]) => ({
    variable: row.variable,
    fallback: row.fallbackText ?? row.kind.format(row.fallback),
    rule: row.kind.rule,
    about: row.alias === undefined ? row.about : `${row.about} \`${row.alias}\` is read when it is not set.`,
  }));
}

function rows(): [SettingName, Setting<unknown, unknown>][] {
  return Object.entries(SETTINGS) as [SettingName, Setting<unknown, unknown>][];
}
