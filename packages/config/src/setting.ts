import type { Kind } from './kinds.js';

/** What a default may depend on. */
export interface DefaultContext {
  readonly profile: 'patchbay' | 'kubemq';
  readonly hostName: string;
}

/** One setting: a row of the table in `settings.ts`. `T` is what is read, `D` what the default may be beside it. */
export interface Setting<T, D = T> {
  /** Environment variable. */
  readonly variable: string;
  /** Older name that is honoured when `variable` is not set. */
  readonly alias?: string;
  readonly kind: Kind<T>;
  readonly fallback: T | D | ((context: DefaultContext) => T | D);
  /** The default in words, for tables, where the value alone does not say it. */
  readonly fallbackText?: string;
  /** What it does, in one sentence for people. */
  readonly about: string;
  /** Whether the value may hold credentials: they are masked wherever it is shown. */
  readonly isSecret?: boolean;
}

/** Declares a setting; only there so that the types are inferred. */
export function setting<T, D = T>(row: Setting<T, D>): Setting<T, D> {
  return row;
}
