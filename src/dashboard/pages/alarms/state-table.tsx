// The state of each alarm: those that fire or are about to, then a row for each other rule with what it sees now.
import {
  type AlarmName,
  type AlarmRule,
  type AlarmState,
  alarmKey,
  type Observation,
  type Severity,
} from "../../../core/alarms/alarm.ts";
import type { Alarms } from "../../../core/sql/alarms.ts";
import type { PageRequest } from "../../page.ts";
import { ActionForm, actionsColumn } from "../../parts/action-form.tsx";
import { type Shape, State } from "../../parts/state.tsx";
import { None, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { firesWhen, formatValue, measures } from "./rule-words.ts";

export interface AlarmRow {
  alarm: AlarmName;
  state: "firing" | "silenced" | "pending" | "ok" | "off";
  sees: string;
  value: number | null;
  limit: Pick<AlarmRule, "threshold" | "windowMinutes">;
  severity: Severity;
  since: Date | null;
  silencedUntil: Date | null;
}

interface Source {
  stored: Alarms;
  rules: readonly AlarmRule[];
  observations: readonly Observation[];
  now: Date;
}

const order: AlarmRow["state"][] = ["firing", "silenced", "pending", "ok", "off"];

export function alarmRows({ stored, rules, observations, now }: Source): AlarmRow[] {
  const silenceOf = (alarm: AlarmName) =>
    stored.silences.find((silence) => silence.alarm === alarm && silence.until > now)?.until ?? null;
  const rulesByKey = new Map(observations.map((observation) => [alarmKey(observation), observation.rule]));
  // What is no longer observed has no rule of its own any more.
  const bad = stored.alarms
    .filter(({ state }) => state.phase !== "ok")
    .map(({ state }) => ({
      state,
      rule: rulesByKey.get(alarmKey(state)) ?? rules.find(({ alarm }) => alarm === state.alarm),
    }));
  const rows = [
    ...bad.map(({ state, rule }) => rowOfState(state, { rule, silencedUntil: silenceOf(state.alarm) })),
    ...rules
      .filter((rule) => !bad.some((entry) => entry.rule === rule))
      .map((rule) => rowOfRule(rule, { observations, silencedUntil: silenceOf(rule.alarm), now })),
  ];
  return rows.toSorted((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
}

function rowOfState(
  { alarm, phase, summary, value, threshold, severity, since }: AlarmState,
  { rule, silencedUntil }: { rule: AlarmRule | undefined; silencedUntil: Date | null },
): AlarmRow {
  const aloud = phase === "firing" ? "firing" : "pending";
  return {
    ...{ alarm, value, severity, since, silencedUntil },
    state: silencedUntil ? "silenced" : aloud,
    sees: summary,
    limit: { threshold, windowMinutes: rule?.windowMinutes ?? 0 },
  };
}

function rowOfRule(
  rule: AlarmRule,
  {
    observations,
    silencedUntil,
    now,
  }: { observations: readonly Observation[]; silencedUntil: Date | null; now: Date },
): AlarmRow {
  const own = observations.filter((observation) => observation.rule === rule);
  const worst = own.toSorted((a, b) => Number(b.isBad) - Number(a.isBad) || b.value - a.value)[0];
  const until = silencedUntil ?? (rule.silencedUntil && rule.silencedUntil > now ? rule.silencedUntil : null);
  // The next watch round will store what is bad now.
  const seen = worst?.isBad ? "pending" : "ok";
  const quiet = until ? "silenced" : seen;
  return {
    alarm: rule.alarm,
    state: rule.isEnabled ? quiet : "off",
    sees: worst?.summary ?? (rule.isEnabled ? "nothing to see" : "the rule is not checked"),
    value: worst?.value ?? null,
    limit: worst ? { ...rule, threshold: worst.threshold } : rule,
    severity: rule.severity,
    since: null,
    silencedUntil: until,
  };
}

export function StateTable({ request, rows }: { request: PageRequest; rows: readonly AlarmRow[] }) {
  const { now } = request;
  return (
    <div class="card">
      <Table
        name="Alarms"
        rows={rows}
        columns={[
          {
            title: "Alarm",
            class: "nw",
            cell: ({ alarm, sees }) => (
              <>
                <span title={measures(alarm)}>{alarm}</span>
                <span class="only-s muted small">{seesText(sees)}</span>
              </>
            ),
          },
          { title: "State", class: "nw", cell: ({ state }) => <State {...shapes[state]} isShort /> },
          { title: "What it sees", class: "two-line hide-s", cell: (row) => <Sees row={row} now={now} /> },
          { title: "Value", class: "n hide-s", cell: (row) => <Value row={row} /> },
          {
            title: "Fires when",
            class: "hide-m muted nw",
            cell: ({ alarm, limit }) => firesWhen(alarm, limit),
          },
          { title: "Severity", class: "hide-m", cell: (row) => <SeverityChip row={row} /> },
          ...actionsColumn<AlarmRow>(request, (row) => <Actions request={request} row={row} />),
        ]}
      />
    </div>
  );
}

const shapes: Record<AlarmRow["state"], { shape: Shape; word: string }> = {
  firing: { shape: "alarm", word: "firing" },
  silenced: { shape: "silenced", word: "silenced" },
  pending: { shape: "later", word: "about to fire" },
  ok: { shape: "ok", word: "ok" },
  off: { shape: "missed", word: "off" },
};

/** The limit has a column of its own. */
function seesText(sees: string): string {
  return sees.replace(/; the limit is .*$/, "").replace(/^./, (sign) => sign.toUpperCase());
}

function Sees({ row, now }: { row: AlarmRow; now: Date }) {
  const text = seesText(row.sees);
  return (
    <>
      <span title={text}>{text}</span>
      <span class="muted small">
        <Times row={row} now={now} />
      </span>
    </>
  );
}

function Times({ row: { alarm, since, silencedUntil }, now }: { row: AlarmRow; now: Date }) {
  if (!since && !silencedUntil) return <>{measures(alarm)}</>;
  return (
    <>
      {since ? (
        <>
          Since <Time at={since} now={now} />
        </>
      ) : null}
      {since && silencedUntil ? ", " : ""}
      {silencedUntil ? (
        <>
          silence ends <Time at={silencedUntil} now={now} />
        </>
      ) : null}
    </>
  );
}

function Value({ row: { alarm, value, state, since } }: { row: AlarmRow }) {
  if (value === null) return <None text="–" />;
  const isBad = state === "firing" || (state === "silenced" && since !== null);
  return <span class={isBad ? "t-dead strong" : undefined}>{formatValue(alarm, value)}</span>;
}

function SeverityChip({ row: { severity, state, since } }: { row: AlarmRow }) {
  const isLoud = since !== null && state !== "pending";
  const kind = severity === "critical" ? " is-dead" : " is-warn";
  return <span class={`chip${isLoud ? kind : ""}`}>{severity}</span>;
}

function Actions({ request, row: { alarm, silencedUntil } }: { request: PageRequest; row: AlarmRow }) {
  if (silencedUntil)
    return (
      <ActionForm
        request={request}
        action="unsilenceAlarm"
        fields={{ alarm }}
        label="End silence"
        kind="quiet"
      />
    );
  return (
    <a class="btn is-quiet" href={`/alarms?silence=${alarm}#silence`} aria-label={`Silence: ${alarm}`}>
      Silence
    </a>
  );
}
