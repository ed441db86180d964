// The state machine of one alarm: ok, pending for some rounds, firing, ok again. Targets are told of a change once, of
// one that lasts again after an interval, and of nothing during a silence: what they missed is made up for after it.
import type { AlarmState, Notice, Observation } from "./alarm.ts";

export interface Step {
  state: AlarmState;
  /** The notice to the targets; null: none. */
  notice: Notice | null;
}

export interface Round {
  at: Date;
  /** Of this alarm. */
  silencedUntil: Date | null;
}

/** Null: there is nothing to keep. An alarm that is not observed any more has nothing to fire for. */
export function advance(
  known: AlarmState | undefined,
  seen: Observation | undefined,
  round: Round,
): Step | null {
  const before = known ?? (seen && quiet(seen, round.at));
  if (!before || isIdle(before, seen)) return null;
  const next = seen ? observed(before, seen, round.at) : unobserved(before, round.at);
  const kind = dueNotice(next, seen, round);
  if (!kind) return { state: next, notice: null };
  const state: AlarmState = { ...next, notified: kind === "firing" ? "firing" : "ok", notifiedAt: round.at };
  const { alarm, queue, jobType, severity, value, threshold, since, summary } = state;
  return {
    state,
    notice: { kind, at: round.at, alarm, queue, jobType, severity, value, threshold, since, summary },
  };
}

function isIdle(before: AlarmState, seen: Observation | undefined): boolean {
  return before.phase === "ok" && before.notified === "ok" && before.recent.length === 0 && !seen?.isBad;
}

function quiet(seen: Observation, at: Date): AlarmState {
  const { alarm, queue, jobType, value, threshold, summary, rule } = seen;
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

function observed(before: AlarmState, seen: Observation, at: Date): AlarmState {
  const { value, threshold, summary, rule } = seen;
  const latest = { ...before, value, threshold, summary, severity: rule.severity };
  return before.phase === "firing" ? whileFiring(latest, seen, at) : beforeFiring(latest, seen, at);
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
  return clearRounds >= rule.clearRounds ? ended(before, at) : { ...before, clearRounds };
}

function unobserved(before: AlarmState, at: Date): AlarmState {
  if (before.phase === "ok") return { ...before, recent: [] };
  return { ...ended(before, at), value: null, summary: `over. Last seen: ${before.summary}` };
}

function ended(before: AlarmState, at: Date): AlarmState {
  return { ...before, phase: "ok", changedAt: at, recent: [], clearRounds: 0 };
}

function dueNotice(
  state: AlarmState,
  seen: Observation | undefined,
  { at, silencedUntil }: Round,
): "firing" | "resolved" | null {
  if (silencedUntil && at < silencedUntil) return null;
  if (state.phase !== "firing")
    return state.notified === "firing" && state.phase === "ok" ? "resolved" : null;
  if (state.notified === "ok") return "firing";
  const repeatMs = (seen?.rule.repeatMinutes ?? Number.POSITIVE_INFINITY) * 60_000;
  return at.getTime() - (state.notifiedAt?.getTime() ?? 0) >= repeatMs ? "firing" : null;
}
