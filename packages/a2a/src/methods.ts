const STREAMING_METHODS: ReadonlySet<string> = new Set([
  'message/stream',
  'tasks/resubscribe',
  'SendStreamingMessage',
  'SubscribeToTask',
]);

/** Whether the answer to `method` is a stream. Decided on the method alone; clients do not reliably send `Accept`. */
export function isStreamingMethod(method: string): boolean {
  return STREAMING_METHODS.has(method);
}

const METRIC_METHODS: ReadonlySet<string> = new Set([
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/cancel',
  'tasks/send',
]);

/** `method` as a metric label: methods are free text of the client, so all but a few are `unknown`. */
export function methodLabel(method: string): string {
  return METRIC_METHODS.has(method) ? method : 'unknown';
}
