// The state of an alarm over any sequence of rounds: when it fires, resolves, repeats and is silent.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AlarmRule, AlarmState, Notice, Observation } from "../../src/core/alarms/alarm.ts";
import { alarmRules } from "../../src/core/alarms/alarm-defaults.ts";
import { advance } from "../../src/core/alarms/alarm-state.ts";
import { tooHigh } from "../../src/core/alarms/reading.ts";

const threshold = 100;
const minute = (n: number) => new Date(Date.UTC(2026, 0, 1) + n * 60_000);

interface Rounds {
  rule: AlarmRule;
  /** The reading of each round, a minute apart. Null means that there is none. */
  values: readonly (number | null)[];
  /** The rounds in which the alarm is silenced: from (inclusive) to (exclusive). */
  silence?: { from: number; to: number };
}

function ruleOf(fields: Partial<AlarmRule> = {}): AlarmRule {
  const [rule] = alarmRules({ queue_length_high: [{ threshold, ...fields }] }).filter(
    ({ alarm }) => alarm === "queue_length_high",
  );
  if (!rule) throw new Error("there is no such rule");
  return rule;
}

function run({ rule, values, silence }: Rounds) {
  let state: AlarmState | undefined;
  const notices: (Notice & { round: number })[] = [];
  const phases: AlarmState["phase"][] = [];
  values.forEach((value, round) => {
    const isSilenced = silence && round >= silence.from && round < silence.to;
    const step = advance(state, value === null ? undefined : observationOf(rule, value), {
      at: minute(round),
      silencedUntil: isSilenced ? minute(silence.to) : null,
    });
    state = step?.state ?? state;
    phases.push(state?.phase ?? "ok");
    if (step?.notice) notices.push({ ...step.notice, round });
  });
  return { notices, phases, kinds: notices.map(({ kind, round }) => `${round} ${kind}`) };
}

function observationOf(rule: AlarmRule, value: number): Observation {
  const { alarm, queue, jobType } = rule;
  return {
    alarm,
    queue,
    jobType,
    rule,
    ...tooHigh(value, rule.threshold, { summary: "length", unit: "jobs" }),
  };
}

const never = Number.MAX_SAFE_INTEGER;
const anyRule = fc
  .record({
    forRounds: fc.integer({ min: 1, max: 4 }),
    more: fc.integer({ min: 0, max: 3 }),
    clearRounds: fc.integer({ min: 1, max: 4 }),
  })
  .map(({ forRounds, more, clearRounds }) =>
    ruleOf({ forRounds, ofRounds: forRounds + more, clearRounds, repeatMinutes: never }),
  );
const anyValues = fc.array(fc.option(fc.integer({ min: 0, max: 200 }), { freq: 9 }), { maxLength: 60 });

describe("an alarm", () => {
  test("fires after enough bad rounds among the last ones, and resolves after enough good rounds in a row", () => {
    const rule = ruleOf({ forRounds: 2, ofRounds: 3, clearRounds: 2 });
    const { kinds, phases } = run({ rule, values: [0, 101, 0, 101, 0, 95, 0, 0, 0] });
    expect(phases).toEqual(["ok", "pending", "pending", "firing", "firing", "firing", "firing", "ok", "ok"]);
    expect(kinds).toEqual(["3 firing", "7 resolved"]);
  });

  test("does not fire for a single bad round", () => {
    const { kinds, phases } = run({ rule: ruleOf({ forRounds: 2 }), values: [101, 0, 0, 101, 0, 101, 0] });
    expect(kinds).toEqual([]);
    expect(phases).toEqual(["pending", "pending", "ok", "pending", "pending", "pending", "pending"]);
  });

  test("has the time of the first bad round, not of the notice", () => {
    const { notices } = run({ rule: ruleOf({ forRounds: 3 }), values: [0, 101, 102, 103, 0, 0, 0] });
    expect(notices).toMatchObject([
      { kind: "firing", since: minute(1), at: minute(3), value: 103, threshold },
      { kind: "resolved", since: minute(1), at: minute(6), value: 0 },
    ]);
  });

  test("resolves when there is no reading any more", () => {
    expect(run({ rule: ruleOf({ forRounds: 1 }), values: [101, null, null] }).kinds).toEqual([
      "0 firing",
      "1 resolved",
    ]);
  });

  test("repeats its notice after its interval while it fires", () => {
    const rule = ruleOf({ forRounds: 1, repeatMinutes: 10 });
    const { kinds } = run({ rule, values: Array.from({ length: 25 }, () => 200) });
    expect(kinds).toEqual(["0 firing", "10 firing", "20 firing"]);
  });

  test("that resolves in a silence sends nothing; one that still fires is sent when the silence ends", () => {
    const rule = ruleOf({ forRounds: 1, clearRounds: 1, repeatMinutes: never });
    const silence = { from: 1, to: 5 };
    expect(run({ rule, silence, values: [0, 101, 101, 0, 0, 0, 0] }).kinds).toEqual([]);
    expect(run({ rule, silence, values: [0, 101, 101, 101, 101, 101, 0] }).kinds).toEqual([
      "5 firing",
      "6 resolved",
    ]);
    expect(run({ rule, silence, values: [101, 101, 0, 0, 0, 0, 0] }).kinds).toEqual([
      "0 firing",
      "5 resolved",
    ]);
  });
});

describe("for any readings", () => {
  test("readings within 10 % below the threshold neither fire nor resolve an alarm", () => {
    fc.assert(
      fc.property(
        anyRule,
        fc.array(fc.integer({ min: 91, max: 200 }), { minLength: 1, maxLength: 60 }),
        (rule, noise) => {
          const lead = Array.from({ length: rule.forRounds }, () => 150);
          expect(run({ rule, values: [...lead, ...noise] }).notices).toHaveLength(1);
          expect(run({ rule, values: noise.map((value) => Math.min(value, threshold)) }).notices).toEqual([]);
        },
      ),
    );
  });

  test("there is exactly one notice for each change", () => {
    fc.assert(
      fc.property(anyRule, anyValues, (rule, values) => {
        const { notices, phases } = run({ rule, values });
        const changes = phases.flatMap((phase, round) => {
          const was = phases[round - 1] ?? "ok";
          if (phase === "firing" && was !== "firing") return [`${round} firing`];
          return phase !== "firing" && was === "firing" ? [`${round} resolved`] : [];
        });
        expect(notices.map(({ kind, round }) => `${round} ${kind}`)).toEqual(changes);
      }),
    );
  });

  test("repeats come at the interval, and only while the alarm fires", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 9 }), anyValues, (repeatMinutes, values) => {
        const rule = ruleOf({ forRounds: 1, clearRounds: 2, repeatMinutes });
        const { notices, phases } = run({ rule, values });
        notices.forEach((notice, index) => {
          const last = notices[index - 1];
          if (notice.kind === "firing") expect(phases[notice.round]).toBe("firing");
          if (notice.kind === "firing" && last?.kind === "firing")
            expect(notice.round - last.round).toBe(repeatMinutes);
        });
      }),
    );
  });

  test("a silence holds back notices and no changes of state, and the last notice matches the state after it", () => {
    fc.assert(
      fc.property(anyRule, anyValues, fc.nat(30), fc.nat(30), (rule, values, from, length) => {
        const silence = { from, to: from + length };
        const silenced = run({ rule, values, silence });
        expect(silenced.phases).toEqual(run({ rule, values }).phases);
        expect(silenced.notices.filter(({ round }) => round >= silence.from && round < silence.to)).toEqual(
          [],
        );
        expect(silenced.notices.map(({ kind }) => kind)).toEqual(
          silenced.notices.map((_, index) => (index % 2 === 0 ? "firing" : "resolved")),
        );
        const isSettled = values.length > silence.to && silenced.phases.at(-1) !== "pending";
        if (isSettled) {
          expect(silenced.notices.at(-1)?.kind === "firing").toBe(silenced.phases.at(-1) === "firing");
        }
      }),
    );
  });
});
