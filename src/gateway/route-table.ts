/** Which methods a path answers, so that a wrong method is told from a wrong path. */
import type { FastifyInstance } from "fastify";

export interface RouteTable {
  /** The methods of the routes that match a path, in the order they were added; none if nothing is there. */
  methodsAt(path: string): string[];
}

/** Watches the routes that are added to a server from now on. A route's path may end with `*`. */
export function createRouteTable(app: FastifyInstance): RouteTable {
  const routes: { readonly url: string; readonly method: string }[] = [];
  app.addHook("onRoute", ({ url, method }) => {
    for (const one of [method].flat()) routes.push({ url, method: one });
  });
  return {
    methodsAt(path) {
      const matching = routes.filter(({ url }) => (url.endsWith("*") ? path.startsWith(url.slice(0, -1)) : path === url));
      return [...new Set(matching.map(({ method }) => method))];
    },
  };
}
