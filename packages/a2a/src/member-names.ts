import type { JsonMember } from '@patchbay/core';

/** Up to here comparing each name with each is quicker than a set of them. */
const FEW = 16;
const BACKSLASH = 0x5c;

/**
 * The names of an object's members, as bytes. Hot path: a name becomes a text only where it has to, in objects with
 * many members and for names that are written with escapes.
 */
export class MemberNames {
  readonly #bytes: Buffer;
  readonly #members: readonly JsonMember[];
  /** What each name says, when bytes do not tell. */
  readonly #texts: readonly string[] | undefined;

  constructor(bytes: Buffer, members: readonly JsonMember[]) {
    this.#bytes = bytes;
    this.#members = members;
    const isPlain = members.length <= FEW && !members.some((member) => this.#hasEscape(member));
    this.#texts = isPlain ? undefined : members.map((member) => this.#textOf(member));
  }

  /** The first member of that name. */
  find(name: Buffer): JsonMember | undefined {
    if (this.#texts !== undefined) return this.#members[this.#texts.indexOf(name.toString())];
    for (const member of this.#members) {
      if (this.#isSame(member, name, 0, name.length)) return member;
    }
    return undefined;
  }

  /** The first name that an earlier member has, too. */
  givenTwice(): string | undefined {
    if (this.#texts !== undefined) {
      const known = new Set<string>();
      return this.#texts.find((text) => known.size === known.add(text).size);
    }
    for (let at = 1; at < this.#members.length; at += 1) {
      const member = this.#members[at];
      if (member === undefined) continue;
      for (let before = 0; before < at; before += 1) {
        const other = this.#members[before];
        if (other !== undefined && this.#isSame(member, this.#bytes, other.nameStart, other.nameEnd)) {
          return this.#textOf(member);
        }
      }
    }
    return undefined;
  }

  #isSame({ nameStart, nameEnd }: JsonMember, other: Buffer, start: number, end: number): boolean {
    if (nameEnd - nameStart !== end - start) return false;
    for (let at = 0; at < end - start; at += 1) {
      if (this.#bytes[nameStart + at] !== other[start + at]) return false;
    }
    return true;
  }

  #hasEscape({ nameStart, nameEnd }: JsonMember): boolean {
    for (let at = nameStart; at < nameEnd; at += 1) if (this.#bytes[at] === BACKSLASH) return true;
    return false;
  }

  #textOf({ nameStart, nameEnd }: JsonMember): string {
    return String(JSON.parse(this.#bytes.toString('utf8', nameStart - 1, nameEnd + 1)));
  }
}
