/** Bytes that may be under way unread when nobody says otherwise. */
export const DEFAULT_WINDOW_BYTES = 262_144;
