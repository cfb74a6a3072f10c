/** What a client still sends of a body that was refused before it was read. */
import type { IncomingMessage } from "node:http";

/** nginx lingers as long by default between two reads. */
export const lingerMs = 5000;

/**
 * Lets the rest of a body come in and be dropped once the answer is sent, for five seconds at most. Closing at once would reset the connection while
 * the client still writes, and many clients then report the broken connection in place of the answer. The answer must not say `connection: close`:
 * Node itself reads and drops what is unread of a connection that it keeps.
 */
export function dropUnread(raw: IncomingMessage): void {
  if (raw.complete) return;
  const timer = setTimeout(() => {
    if (!raw.complete) raw.socket.destroy();
  }, lingerMs);
  for (const event of ["end", "close"] as const) raw.once(event, () => clearTimeout(timer));
}
