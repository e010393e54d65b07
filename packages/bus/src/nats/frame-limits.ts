/**
 * Bytes that go as one message without credit, requests and replies alike. Larger ones are credited frames, so that a
 * receiver which has stopped cannot make a server hold more than a little for it.
 */
export const MAX_WHOLE_BYTES = 65_536;

/** Bytes that may be under way unread when nobody says otherwise. */
export const DEFAULT_WINDOW_BYTES = 262_144;
