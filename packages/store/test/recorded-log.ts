import type { StoreLog } from '@patchbay/store';

/** A log that keeps its messages. */
export class RecordedLog implements StoreLog {
  readonly messages: string[] = [];

  info(_fields: object, message: string): void {
    this.messages.push(message);
  }

  warn(_fields: object, message: string): void {
    this.messages.push(message);
  }

  error(_fields: object, message: string): void {
    this.messages.push(message);
  }
}
