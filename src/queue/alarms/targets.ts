// The alarm targets of the settings, each with its health as the database has it. The health of a former URL does not count.
import type { StoredTarget } from "../../core/sql/alarms.ts";
import type { KeyedTarget } from "./notify.ts";

export interface TargetState extends KeyedTarget, Omit<StoredTarget, "urlHash"> {}

export function targetStates(
  targets: readonly KeyedTarget[],
  storedTargets: readonly StoredTarget[],
): TargetState[] {
  return targets.map((target) => toTargetState(target, storedTargets));
}

function toTargetState(target: KeyedTarget, storedTargets: readonly StoredTarget[]): TargetState {
  const sameName = storedTargets.find(({ name }) => name === target.name);
  const current = sameName?.urlHash === target.urlHash ? sameName : undefined;
  return {
    ...target,
    goneSince: current?.goneSince ?? null,
    failingSince: current?.failingSince ?? null,
    deliveredAt: current?.deliveredAt ?? null,
    status: current?.status ?? null,
    error: current?.error ?? null,
    // Deliveries belong to the name, so they wait for the new URL.
    pending: sameName?.pending ?? 0,
  };
}
