// The bindings of the user's Worker. They are typed once, in the place that Cloudflare has for them: the global interface
// `Cloudflare.Env`, which `wrangler types` writes.
import type { HandlerContext as AnyContext } from "../queue/ports.ts";

declare global {
  namespace Cloudflare {
    /** A user's project adds its bindings. */
    interface Env {}
  }
}

export type WorkerEnv = Cloudflare.Env;
export type HandlerContext<Env = WorkerEnv> = AnyContext<Env>;
