const SHOWN_CHARACTERS = 80;

/** What must not be repeated in an error message or a log: tokens, keys and passwords in URLs. */
const CREDENTIALS: readonly RegExp[] = [
  /\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g,
  /\bBearer\s+\S{20,}/gi,
  /(?<=:\/\/)[^\s/@]+(?=@)/g,
  /-----BEGIN [\s\S]*/g,
  /\b(?:sk-|gh[pousr]_|github_pat_|xox[abeoprs]-|AKIA|ASIA|AIza|glpat-|npm_)[\w-]{8,}/g,
  // Nothing that people write has 40 characters of this alphabet, mixed like that.
  /\b(?=\w*\d)(?=\w*[a-z])(?=\w*[A-Z])\w{40,}/g,
];

/** A value of a card as an error message shows it: at most 80 characters, credentials masked, containers only named. */
export function showValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'string') return JSON.stringify(shorten(maskCredentials(value)));
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  return JSON.stringify(value);
}

function maskCredentials(text: string): string {
  // Only what can be shown is looked at; the margin keeps a token whole that starts in it.
  const head = text.length > 4_096 ? text.slice(0, 4_096) : text;
  return CREDENTIALS.reduce((masked, pattern) => masked.replace(pattern, '***'), head);
}

function shorten(text: string): string {
  const characters = Array.from(text.slice(0, 2 * SHOWN_CHARACTERS + 2));
  return characters.length <= SHOWN_CHARACTERS ? text : `${characters.slice(0, SHOWN_CHARACTERS - 1).join('')}…`;
}
