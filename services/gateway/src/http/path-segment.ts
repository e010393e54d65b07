/** One part of a request target's path as it came, not percent-decoded; `index` 1 is the first after the slash. */
export function pathSegment(url: string, index: number): string {
  const end = url.indexOf('?');
  return (end === -1 ? url : url.slice(0, end)).split('/', index + 1)[index] ?? '';
}
