import { isUtf8 } from 'node:buffer';
import { scanJson } from './json-scan.js';
import { PatchbayError } from './patchbay-error.js';

/** Bounds of {@link parseStrictJson}. */
export interface StrictJsonLimits {
  /** Deepest nesting of objects and arrays. Default 64. */
  readonly maxDepth?: number;
}

const DEFAULT_MAX_DEPTH = 64;

// A byte order mark is no JSON (RFC 8259 section 8.1); the decoder would swallow it.
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Parses JSON that will be stored: refuses, with the path, what stores and readers disagree on.
 *
 * @throws PatchbayError `parse_error` for what is not JSON in UTF-8; `invalid_argument` for members named twice, the
 * member name `__proto__`, U+0000, lone surrogates, and nesting over `maxDepth`.
 */
export function parseStrictJson(bytes: Uint8Array, limits: StrictJsonLimits = {}): unknown {
  const maxDepth = limits.maxDepth ?? DEFAULT_MAX_DEPTH;
  if (!isUtf8(bytes)) throw new PatchbayError('parse_error', 'the body is not valid UTF-8; send JSON in UTF-8');
  if (scanJson(bytes, maxDepth) === 'too_deep') {
    throw new PatchbayError('invalid_argument', `the JSON is nested deeper than ${maxDepth} levels`);
  }
  const text = utf8.decode(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new PatchbayError('parse_error', `the body is not valid JSON: ${(cause as Error).message}`, { cause });
  }
  refuseAmbiguities(text);
  return value;
}

/** Where the scan is: inside an object (names seen so far, and the current one) or an array (the current index). */
interface Container {
  readonly names: Set<string> | undefined;
  member: string;
  index: number;
}

/** A second pass over text that is known to be valid, which sees what `JSON.parse` forgets: names given twice. */
function refuseAmbiguities(text: string): void {
  const open: Container[] = [];
  let at = 0;
  while (at < text.length) {
    const char = text[at];
    const inner = open.at(-1);
    if (char === '"') {
      const end = endOfText(text, at + 1);
      const content = stringValue(text, at, end);
      const isName = inner?.names !== undefined && isFollowedByColon(text, end);
      if (isName) {
        inner.member = content;
        if (inner.names.has(content)) refuse(open, 'is given twice; name each member once');
        if (content === '__proto__') refuse(open, 'is not allowed as a member name');
        inner.names.add(content);
      }
      if (content.includes('\0')) refuse(open, 'contains U+0000');
      if (!content.isWellFormed()) refuse(open, 'contains a lone surrogate; it is not valid Unicode');
      at = end;
      continue;
    }
    if (char === '{' || char === '[') {
      open.push({ names: char === '{' ? new Set() : undefined, member: '', index: 0 });
    } else if (char === '}' || char === ']') {
      open.pop();
    } else if (char === ',' && inner !== undefined) {
      inner.index += 1;
    }
    at += 1;
  }
}

function isFollowedByColon(text: string, from: number): boolean {
  let at = from;
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at += 1;
  return text[at] === ':';
}

/** The index just past the quote that ends the string whose content starts at `from`. */
function endOfText(text: string, from: number): number {
  let at = from;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function stringValue(text: string, start: number, end: number): string {
  const literal = text.slice(start, end);
  return literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1);
}

function refuse(open: readonly Container[], what: string): never {
  const path = open
    .map((container) => (container.names === undefined ? `[${container.index}]` : `.${container.member}`))
    .join('')
    .replace(/^\./, '');
  throw new PatchbayError('invalid_argument', `${path === '' ? 'the value' : path} ${what}`, { details: { path } });
}
