import { describeConfig } from '@patchbay/config';
import type { LoadedConfig } from '@patchbay/config';

/** `patchbay config`: every setting with its value and where it came from, credentials masked. */
export function showConfig(loaded: LoadedConfig): void {
  const lines = describeConfig(loaded);
  const nameWidth = Math.max(...lines.map(({ variable }) => variable.length));
  const valueWidth = Math.max(...lines.map(({ value }) => value.length));
  for (const { variable, value, origin } of lines) {
    console.log(`${variable.padEnd(nameWidth)}  ${value.padEnd(valueWidth)}  ${origin}`);
  }
}
