import { PatchbayError } from '@patchbay/core';

/** Everything that is wrong with the settings, one line each. */
export class ConfigError extends PatchbayError {
  override readonly name = 'ConfigError';
  /** `<variable> <rule>; got <value>`, in the order of the settings. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super('invalid_argument', problems.join('\n'));
    this.problems = problems;
  }
}
