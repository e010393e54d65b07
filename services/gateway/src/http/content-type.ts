/** Whether a `Content-Type` says JSON; parameters such as `charset` do not count. */
export function isJsonContentType(contentType: string | undefined): boolean {
  if (contentType === undefined) return false;
  // The usual form first: this is the hot path.
  if (contentType === 'application/json') return true;
  return contentType.split(';', 1)[0]?.trim().toLowerCase() === 'application/json';
}

/** What came instead of JSON, and what to send. */
export function explainContentType(contentType: string | undefined): string {
  const came = contentType === undefined ? 'no Content-Type came' : `Content-Type is ${JSON.stringify(contentType)}`;
  return `${came}; send Content-Type: application/json`;
}
