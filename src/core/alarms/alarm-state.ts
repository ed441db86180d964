// The state machine of one alarm: ok, pending for some rounds, firing, ok again. Targets are notified once of each change.
// If an alarm keeps firing, the notice is repeated after an interval. During a silence nothing is sent: if the state still
// differs from the last notice when the silence ends, a notice is sent then.
import type { AlarmState, Notice, Observation } from "./alarm.ts";

export interface Step {
  state: AlarmState;
  /** The notice to the targets. Null if there is none. */
  notice: Notice | null;
}

export interface Round {
  at: Date;
  /** The end of the silence of this alarm. */
  silencedUntil: Date | null;
}

/** Null if there is nothing to store. An alarm that is no longer observed ends. */
export function advance(
  lastState: AlarmState | undefined,
  observation: Observation | undefined,
  round: Round,
): Step | null {
  const before = lastState ?? (observation && initialState(observation, round.at));
  if (!before || isIdle(before, observation)) return null;
  const next = observation
    ? applyObservation(before, observation, round.at)
    : endUnobserved(before, round.at);
  const kind = findDueNotice(next, observation, round);
  if (!kind) return { state: next, notice: null };
  const state: AlarmState = { ...next, notified: kind === "firing" ? "firing" : "ok", notifiedAt: round.at };
  const { alarm, queue, jobType, severity, value, threshold, since, summary } = state;
  return {
    state,
    notice: { kind, at: round.at, alarm, queue, jobType, severity, value, threshold, since, summary },
  };
}

function isIdle(before: AlarmState, observation: Observation | undefined): boolean {
  return (
    before.phase === "ok" && before.notified === "ok" && before.recent.length === 0 && !observation?.isBad
  );
}

function initialState(observation: Observation, at: Date): AlarmState {
  const { alarm, queue, jobType, value, threshold, summary, rule } = observation;
  return {
    ...{ alarm, queue, jobType, value, threshold, summary, severity: rule.severity },
    ...{
      phase: "ok",
      since: at,
      changedAt: at,
      recent: [],
      clearRounds: 0,
      notified: "ok",
      notifiedAt: null,
    },
  };
}

function applyObservation(before: AlarmState, observation: Observation, at: Date): AlarmState {
  const { value, threshold, summary, rule } = observation;
  const latest = { ...before, value, threshold, summary, severity: rule.severity };
  return before.phase === "firing"
    ? whileFiring(latest, observation, at)
    : beforeFiring(latest, observation, at);
}

function beforeFiring(before: AlarmState, { isBad, rule }: Observation, at: Date): AlarmState {
  const recent = [...before.recent, isBad].slice(-rule.ofRounds);
  const badRounds = recent.filter(Boolean).length;
  const phase = badRounds >= rule.forRounds ? "firing" : badRounds > 0 ? "pending" : "ok";
  return {
    ...before,
    phase,
    recent: phase === "pending" ? recent : [],
    clearRounds: 0,
    since: before.phase === "ok" && badRounds > 0 ? at : before.since,
    changedAt: phase === before.phase ? before.changedAt : at,
  };
}

function whileFiring(before: AlarmState, { isClear, rule }: Observation, at: Date): AlarmState {
  const clearRounds = isClear ? before.clearRounds + 1 : 0;
  return clearRounds >= rule.clearRounds ? endAlarm(before, at) : { ...before, clearRounds };
}

function endUnobserved(before: AlarmState, at: Date): AlarmState {
  if (before.phase === "ok") return { ...before, recent: [] };
  return { ...endAlarm(before, at), value: null, summary: `over. Last seen: ${before.summary}` };
}

function endAlarm(before: AlarmState, at: Date): AlarmState {
  return { ...before, phase: "ok", changedAt: at, recent: [], clearRounds: 0 };
}

function findDueNotice(
  state: AlarmState,
  observation: Observation | undefined,
  { at, silencedUntil }: Round,
): "firing" | "resolved" | null {
  if (silencedUntil && at < silencedUntil) return null;
  if (state.phase !== "firing")
    return state.notified === "firing" && state.phase === "ok" ? "resolved" : null;
  if (state.notified === "ok") return "firing";
  const repeatMs = (observation?.rule.repeatMinutes ?? Number.POSITIVE_INFINITY) * 60_000;
  return at.getTime() - (state.notifiedAt?.getTime() ?? 0) >= repeatMs ? "firing" : null;
}
