/**
 * Whether a value can be stored: Postgres keeps neither U+0000 nor lone surrogates in text or `jsonb`, and refuses
 * the whole statement for one of them. Readers of cards refuse both earlier, with the path; this keeps a row that
 * slipped through from failing the other rows of its batch.
 */
export function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isStorable);
  return Object.entries(value).every(([name, member]) => isStorable(name) && isStorable(member));
}
