import { SubjectIndex } from '../subject-index.js';

/** The subjects whose calls are served in this process when they can be. */
export class LocalSubjects {
  readonly #index = new SubjectIndex<{ readonly subject: string; readonly queue: undefined }>();
  readonly #patterns: readonly string[];

  /** @param patterns Names, or patterns with `*` and `>`. */
  constructor(patterns: readonly string[]) {
    this.#patterns = patterns;
    for (const subject of patterns) this.#index.add({ subject, queue: undefined });
  }

  /** Whether calls to `subject` are; a pattern counts when it is one of ours or every subject of it matches. */
  covers(subject: string): boolean {
    // The usual case without splitting the subject into tokens.
    if (this.#patterns.includes('a2a.*') && subject.startsWith('a2a.') && !subject.includes('.', 4)) return true;
    return this.#index.match(subject) !== undefined;
  }
}
