/**
 * One header's value as one text: repeated lines are joined as RFC 9110 section 5.3 says. The HTTP client hands out
 * a list for any name that came twice, whatever its type declaration says.
 */
export function headerValue(value: string | string[] | undefined): string | undefined {
  const text = Array.isArray(value) ? value.join(', ') : value;
  return text === undefined || text === '' ? undefined : text;
}
