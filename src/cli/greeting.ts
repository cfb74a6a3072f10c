/** What `pagoda serve` prints when a model can answer. */

/** The line that tools wait for, and a command to try it with. `port` is the one that is listened on, not 0. */
export function greeting(host: string, port: number, model: string): string {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello!" }] }).replaceAll("'", "'\\''");
  const url = `${baseUrl(reachableHost(host), port)}/v1/chat/completions`;
  return `pagoda ready on ${baseUrl(host, port)}\ntry: curl ${url} -H 'content-type: application/json' -d '${body}'\n`;
}

function baseUrl(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** "Every address" is one to listen on, not one to call. */
function reachableHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
