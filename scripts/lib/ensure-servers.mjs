/**
 * Finds or fetches the servers that tests need. Ends this process when one cannot be had, and says of each how to get it.
 * @param {Record<string, () => Promise<unknown>>} finders By the server's name.
 */
export async function ensureServers(finders) {
  const problems = [];
  for (const [name, find] of Object.entries(finders)) {
    try {
      await find();
    } catch (error) {
      problems.push(`${name}: ${error.message}`);
    }
  }
  if (problems.length === 0) return;
  const names = Object.keys(finders).join(' and a real ');
  console.error(`npm test needs a real ${names}.\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  process.exit(1);
}
