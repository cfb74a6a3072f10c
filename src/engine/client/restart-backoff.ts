/** How long the client waits before it starts a dead engine again. */

const firstDelayMs = 500;
const longestDelayMs = 10_000;

/**
 * Milliseconds before the next start. One death is answered at once, for most are chance;
 * each further one without any progress in between doubles the wait, up to ten seconds.
 */
export function restartDelayMs(deathsWithoutProgress: number): number {
  if (deathsWithoutProgress <= 1) return 0;
  return Math.min(longestDelayMs, firstDelayMs * 2 ** (deathsWithoutProgress - 2));
}
