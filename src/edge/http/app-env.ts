// The context of every route and guard: the invocation, and the caller.

import type { Refusal } from "../../dashboard/page.ts";
import type { JobRegistry } from "../../jobs/registry.ts";
import type { Ports, Sender } from "../../queue/ports.ts";
import type { AlarmClock } from "../clock/alarm-clock.ts";
import type { IsolateState } from "../isolate-state.ts";
import type { Settings } from "../settings/env.ts";
import type { Caller } from "./guards/caller.ts";

/** Routes need the definitions of the registered types. */
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
    alarmClock: AlarmClock;
    /** Who calls, where no key says it: somebody who has signed in to the dashboard, or the command line over SQL. */
    caller?: Caller;
    /** A form of the dashboard that was refused, for the page that shows it again. */
    refusal?: Refusal;
    /** Starts a drain. If it is known which types got jobs, only what they need is started. */
    nudge(queue: string, types?: readonly string[]): void;
  };
}
