// What every route and guard finds in its context: the bindings of an invocation, and who calls.
import type { JobRegistry } from "../../jobs/registry.ts";
import type { Ports, Sender } from "../../queue/ports.ts";
import type { Settings } from "../settings/env.ts";
import type { Caller } from "./guards/caller.ts";

export interface AppEnv {
  Variables: { caller: Caller };
  Bindings: {
    settings: Settings;
    ports: Ports;
    sender: Sender;
    registry: JobRegistry;
    nudge(queueName: string): void;
  };
}
