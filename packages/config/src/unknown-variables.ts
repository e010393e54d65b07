import { closest } from 'fastest-levenshtein';

/** What Kubernetes injects into every pod beside a service named `patchbay`. */
const INJECTED = /^PATCHBAY_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_.+)?)$/;
/** The same for services named `patchbay-…`; told from a misspelt setting by its value. */
const INJECTED_NAMED =
  /^PATCHBAY_.+_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;
const INJECTED_URL = /^(tcp|udp|sctp):\/\//;

/**
 * Whether Kubernetes, and not a person, set this variable: `PATCHBAY_SERVICE_HOST`, `PATCHBAY_PORT_9090_TCP`, or
 * `PATCHBAY_METRICS_PORT=tcp://10.0.0.7:8080` beside a service that is named `patchbay-metrics`.
 */
export function isInjected(variable: string, value: string, isKnown: boolean): boolean {
  if (isKnown) return variable.endsWith('_PORT') && INJECTED_URL.test(value);
  if (INJECTED.test(variable)) return true;
  if (!INJECTED_NAMED.test(variable)) return false;
  return (
    /_(SERVICE_HOST|SERVICE_PORT(_.+)?|(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))$/.test(variable) || INJECTED_URL.test(value)
  );
}

/** One line for each variable with our prefix that no setting has, with the nearest that exists. */
export function unknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): string[] {
  const names = new Set(known);
  return Object.keys(env)
    .filter((variable) => variable.startsWith('PATCHBAY_') && !names.has(variable))
    .filter((variable) => !isInjected(variable, env[variable] ?? '', false))
    .toSorted()
    .map((variable) => `${variable} is not a setting; did you mean ${nearest(variable, known)}?`);
}

/** A name of which only the end is missing (`…_TTL` for `…_TTL_SECONDS`) is nearer than its distance says. */
function nearest(variable: string, known: readonly string[]): string {
  return known.find((name) => name.startsWith(`${variable}_`)) ?? closest(variable, [...known]);
}
