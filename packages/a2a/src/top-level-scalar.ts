/**
 * The text of one member's value in an object's JSON, exactly as it stands there: what a parser makes of a number
 * (`12345678901234567890`, `1.0`) is not what was sent. For values that are neither objects nor arrays.
 *
 * @param text A valid JSON object.
 */
export function topLevelScalar(text: string, member: string): string | undefined {
  let depth = 0;
  let at = 0;
  while (at < text.length) {
    const char = text[at];
    if (char === '"') {
      const end = endOfString(text, at);
      const valueAt = depth === 1 ? valueAfterColon(text, end) : undefined;
      if (valueAt !== undefined && JSON.parse(text.slice(at, end)) === member) return scalarAt(text, valueAt);
      at = end;
      continue;
    }
    if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    at += 1;
  }
  return undefined;
}

const SCALAR = /[^\s,}\]]+/y;
const COLON = /\s*:\s*/y;

/** Where the value begins when the string that ended at `end` is a member's name. */
function valueAfterColon(text: string, end: number): number | undefined {
  COLON.lastIndex = end;
  return COLON.test(text) ? COLON.lastIndex : undefined;
}

function scalarAt(text: string, at: number): string | undefined {
  if (text[at] === '"') return text.slice(at, endOfString(text, at));
  SCALAR.lastIndex = at;
  return SCALAR.exec(text)?.[0];
}

/** The index just past the closing quote of the string that opens at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}
