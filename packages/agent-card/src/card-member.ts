import { PatchbayError } from '@patchbay/core';
import { showValue } from './show-value.js';

/** The members of a JSON object that came from outside. */
export type Members = ReadonlyMap<string, unknown>;

/** Bounds of a text, in characters (Unicode code points). */
export interface TextBounds {
  readonly min?: number;
  readonly max?: number;
}

/** Refuses a member of a card: names the field, the rule and the value. */
export function refuseMember(field: string, rule: string, value: unknown): never {
  throw new PatchbayError('invalid_argument', `${field} must be ${rule}; got ${showValue(value)}`, {
    details: { field },
  });
}

/** The members of `value`, which must be a JSON object. */
export function membersOf(value: unknown, field: string): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuseMember(field, 'a JSON object', value);
  }
  return new Map(Object.entries(value));
}

/** A text that must be there. */
export function requiredText(members: Members, name: string, bounds: TextBounds, field = name): string {
  const value = members.get(name);
  const rule = textRule(bounds);
  if (typeof value !== 'string') return refuseMember(field, rule, value);
  const length = countCharacters(value);
  if (length < (bounds.min ?? 0) || length > (bounds.max ?? Infinity)) {
    const found = length === 0 ? '' : ` (${length} characters)`;
    throw new PatchbayError('invalid_argument', `${field} must be ${rule}; got ${showValue(value)}${found}`, {
      details: { field },
    });
  }
  return value;
}

/** A text that may be left out; null is the same as absent. */
export function optionalText(members: Members, name: string, bounds: TextBounds, field = name): string {
  return isAbsent(members, name) ? '' : requiredText(members, name, bounds, field);
}

/** A list of texts that may be left out; null is the same as absent. */
export function textList(
  members: Members,
  name: string,
  whenAbsent: readonly string[],
  field = name,
): readonly string[] {
  if (isAbsent(members, name)) return whenAbsent;
  return listOf(members, name, field).map((item, index) =>
    typeof item === 'string' ? item : refuseMember(`${field}[${index}]`, 'a string', item),
  );
}

/** A list that may be left out; null is the same as absent. */
export function listOf(members: Members, name: string, field = name): readonly unknown[] {
  const value = members.get(name) ?? [];
  return Array.isArray(value) ? (value as readonly unknown[]) : refuseMember(field, 'an array', value);
}

function isAbsent(members: Members, name: string): boolean {
  return (members.get(name) ?? null) === null;
}

function textRule({ min = 0, max = Infinity }: TextBounds): string {
  if (max === Infinity) return min > 0 ? 'a non-empty string' : 'a string';
  return min > 0 ? `a string of ${min}-${max} characters` : `a string of at most ${max} characters`;
}

function countCharacters(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    // The second half of a surrogate pair is no character of its own (lone ones were refused before).
    if ((text.charCodeAt(at) & 0xfc00) !== 0xdc00) count += 1;
  }
  return count;
}
