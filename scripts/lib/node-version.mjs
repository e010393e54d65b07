const [MAJOR, MINOR] = [20, 19];

/** Ends with a clear message when this Node is too old. */
export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > MAJOR || (major === MAJOR && minor >= MINOR)) return;
  console.error(
    `Patchbay needs Node ${MAJOR}.${MINOR} or later; this is ${process.versions.node}. ` +
      'Install a newer one from https://nodejs.org and try again.',
  );
  process.exit(1);
}
