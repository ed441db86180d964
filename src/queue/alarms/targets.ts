// The targets of alarms as the settings have them, with what is known of each. What was seen of another URL does not count.
import type { KnownTarget } from "../../core/sql/alarms.ts";
import type { KeyedTarget } from "./notify.ts";

export interface TargetState extends KeyedTarget, Omit<KnownTarget, "urlHash"> {}

export function targetStates(targets: readonly KeyedTarget[], known: readonly KnownTarget[]): TargetState[] {
  return targets.map((target) => stateOf(target, known));
}

function stateOf(target: KeyedTarget, known: readonly KnownTarget[]): TargetState {
  const sameName = known.find(({ name }) => name === target.name);
  const current = sameName?.urlHash === target.urlHash ? sameName : undefined;
  return {
    ...target,
    goneSince: current?.goneSince ?? null,
    failingSince: current?.failingSince ?? null,
    deliveredAt: current?.deliveredAt ?? null,
    status: current?.status ?? null,
    error: current?.error ?? null,
    // They wait for the target, whatever its URL is.
    pending: sameName?.pending ?? 0,
  };
}
