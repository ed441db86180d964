// What every route and guard finds in its context: what belongs to the invocation, and who calls.
import type { JobRegistry } from "../../jobs/registry.ts";
import type { Ports, Sender } from "../../queue/ports.ts";
import type { IsolateState } from "../isolate-state.ts";
import type { Settings } from "../settings/env.ts";
import type { Caller } from "./guards/caller.ts";

/** Routes need the payload schemas of the registered types; the queue itself does not. */
interface AppPorts extends Ports {
  readonly registry: JobRegistry;
}

export interface AppEnv {
  Variables: { caller: Caller };
  Bindings: {
    settings: Settings;
    isolate: IsolateState;
    ports: AppPorts;
    sender: Sender;
    nudge(queue: string): void;
  };
}
