// The three charts: what waits, what is completed, what goes wrong. Below them, in words, what they mark.
import { type History, type HistoryRange, historyRangeNames } from "../../core/history.ts";
import { describeMark, latestRate, rangeNames, ratesOf, seriesOf, timesOf } from "../history.ts";
import type { PageRequest } from "../page.ts";
import { Chart } from "./chart.tsx";
import { absolute, count, counted, duration, minuteTime } from "./numbers.ts";
import { urlWith } from "./pager.tsx";
import { Moment } from "./time.tsx";

export function rangeOf({ query }: PageRequest): HistoryRange {
  return historyRangeNames.find((name) => name === query.get("range")) ?? "30m";
}

/** Links to the same page with another range. */
export function Ranges({ request, range }: { request: PageRequest; range: HistoryRange }) {
  return (
    <nav class="seg" aria-label="Range of the charts">
      {historyRangeNames.map((name) => (
        <a href={urlWith(request, { range: name })} aria-current={name === range ? "true" : undefined}>
          {rangeNames[name]}
        </a>
      ))}
    </nav>
  );
}

interface ChartsProps {
  history: History;
  /** Jobs that are due now. */
  dueNow: number;
  /** Only of this queue. */
  queue?: string;
}

export function Charts({ history: all, dueNow, queue }: ChartsProps) {
  const marks = all.marks.filter(({ about }) => queue === undefined || isAbout(about, queue));
  const history = { ...all, marks };
  const { due, died, ...series } = seriesOf(history, queue); // deaths are counts, not rates: each one matters
  const completed = ratesOf(series.completed, history);
  const retried = ratesOf(series.retried, history);
  const { describe, ...shared } = describedBy(history);
  const last = (values: readonly (number | null)[]) => count(latestRate(values, history));
  return (
    <section class="card" aria-label={`Charts of the last ${rangeNames[history.range]}`}>
      <div class="charts">
        <Chart
          id="c-len"
          title="Waiting"
          unit="jobs that are due"
          now={
            <>
              now <b>{count(dueNow)}</b>
            </>
          }
          series={[{ shape: "pending", values: due }]}
          describe={(index) => describe(index, [due, (value) => `${count(value)} due`])}
          {...shared}
        />
        <Chart
          id="c-done"
          title="Completed"
          unit="jobs a minute"
          now={
            <>
              last <b>{last(series.completed)}</b>
            </>
          }
          series={[{ shape: "completed", values: completed }]}
          describe={(index) => describe(index, [completed, (value) => `${count(value)} a minute`])}
          {...shared}
        />
        <Chart
          id="c-bad"
          title="Retries, deaths"
          now={
            <>
              <span class="nw">
                <span class="key k-retrying" /> <b>{last(series.retried)}</b> a minute
              </span>{" "}
              <span class="nw">
                <span class="key k-dead" /> <b>{count(sum(died))}</b> deaths
              </span>
            </>
          }
          series={[
            { shape: "retrying", values: retried },
            { shape: "dead", values: died, as: "bars" },
          ]}
          describe={(index) =>
            describe(
              index,
              [retried, (value) => `${counted(value, "retry", "retries")} a minute`],
              [died, (value) => counted(value, "death")],
            )
          }
          {...shared}
        />
      </div>
      <Marked history={history} />
    </section>
  );
}

/** "queue emails", or an alarm with its queue and type. Names have no spaces. */
function isAbout(about: string, queue: string): boolean {
  const [what, ...names] = about.split(" ");
  return what !== "type" && names.includes(queue);
}

type Values = readonly (number | null)[];

function sum(values: Values): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}

/** What all charts have in common, and the tooltip of a bucket with what is marked in it. */
function describedBy(history: History) {
  const { marks, gaps } = history;
  const times = timesOf(history);
  function describe(index: number, ...named: readonly [Values, (value: number) => string][]): string {
    const [from = new Date(0), to = new Date(0)] = times.slice(index, index + 2);
    const numbers = named.flatMap(([values, say]) => {
      const value = values[index] ?? null;
      return value === null ? [] : [say(value)];
    });
    const marked = marks.filter(({ at }) => at >= from && at < to).map(describeMark);
    const isUnknown = to <= history.recordedSince;
    const told =
      numbers.length > 0 ? numbers.join(", ") : isUnknown ? "nothing was recorded" : "has not ended";
    return `${minuteTime(from)}: ${[told, ...marked].join("; ")}`;
  }
  return { times, marks, gaps, describe };
}

/** The same for people who do not see the charts. */
function Marked({ history: { marks, gaps, starts, recordedSince } }: { history: History }) {
  const isYoung = starts[0] !== undefined && recordedSince > starts[0];
  return (
    <>
      {isYoung ? (
        <p class="pad small muted">
          The record begins at {absolute(recordedSince)}: nothing is drawn before.
        </p>
      ) : null}
      {gaps.length === 0 ? null : (
        <details>
          <summary>
            Shaded: no watch round ended in {gaps.length === 1 ? "this time" : `these ${gaps.length} times`}
          </summary>
          <div class="pad stack">
            <p>The database was left alone, or the crons stopped. The numbers are exact all the same.</p>
            <ul>
              {gaps.map(({ from, to }) => (
                <li>
                  <Moment at={from} text={minuteTime(from)} /> to <Moment at={to} text={minuteTime(to)} />,{" "}
                  {duration(to.getTime() - from.getTime())}
                </li>
              ))}
            </ul>
          </div>
        </details>
      )}
      {marks.length === 0 ? null : (
        <details>
          <summary>Dashed: {counted(marks.length, "pause or alarm", "pauses and alarms")}</summary>
          <ul class="pad">
            {marks.map((mark) => (
              <li>
                <Moment at={mark.at} text={minuteTime(mark.at)} /> {describeMark(mark)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
