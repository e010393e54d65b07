/**
 * The headers of an agent's response as the HTTP client's parser gives them: names and values in turn. Hot path: few of
 * them are ever asked for, so they are looked for, one by one, and not made into an object first.
 */
export class ResponseHeaders {
  /** Of a response that has not come. */
  static readonly none = new ResponseHeaders([]);
  readonly #raw: readonly Buffer[];

  constructor(raw: readonly Buffer[]) {
    this.#raw = raw;
  }

  /**
   * One header's value as one text: repeated lines are joined as RFC 9110 section 5.3 says. Undefined when there is
   * none or it is empty. @param name in lower case
   */
  get(name: string): string | undefined {
    let found: string | undefined;
    for (let at = 0; at + 1 < this.#raw.length; at += 2) {
      const raw = this.#raw[at];
      if (raw?.length !== name.length || raw.toString('latin1').toLowerCase() !== name) continue;
      const value = this.#raw[at + 1]?.toString('latin1') ?? '';
      found = found === undefined ? value : `${found}, ${value}`;
    }
    return found === '' ? undefined : found;
  }
}
