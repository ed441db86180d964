// The metrics of alarms: how many of each fire, and the state of their targets. The number of labels is bounded by the
// alarms and the configured targets.
import { type AlarmState, alarmNames, type TargetHealth } from "../alarms/alarm.ts";
import type { Family } from "./prometheus-text.ts";

export interface TargetGauges extends TargetHealth {
  pending: number;
}

export function alarmFamilies(states: readonly AlarmState[], targets: readonly TargetGauges[]): Family[] {
  const firing = states.filter(({ phase }) => phase === "firing").map(({ alarm }) => alarm);
  return [
    {
      name: "sluice_firing_alarms",
      help: "Alarms that fire: of one name there may be one for each queue and type.",
      type: "gauge",
      samples: alarmNames.map((alarm) => ({
        labels: { alarm },
        value: firing.filter((name) => name === alarm).length,
      })),
    },
    {
      name: "sluice_alarm_target_failing",
      help: "1: notices to the target of alarms fail, or it is switched off.",
      type: "gauge",
      samples: targets.map(({ name, goneSince, failingSince }) => ({
        labels: { target: name },
        value: goneSince || failingSince ? 1 : 0,
      })),
    },
    {
      name: "sluice_pending_deliveries",
      help: "Notices that wait for the target of alarms to take them.",
      type: "gauge",
      samples: targets.map(({ name, pending }) => ({ labels: { target: name }, value: pending })),
    },
  ];
}
