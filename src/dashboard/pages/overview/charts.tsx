// The three charts: what waits, what is completed, what goes wrong.
import { isCanary } from "../../../core/alarms/alarm.ts";
import type { History } from "../../../core/history.ts";
import type { Snapshot } from "../../../core/snapshot.ts";
import { latestRate, rangeNames, seriesOf, timesOf } from "../../history.ts";
import { sumCounts } from "../../parts/books.ts";
import { Chart } from "../../parts/chart.tsx";
import { count, minuteTime } from "../../parts/numbers.ts";

export function Charts({ now, history }: { now: Snapshot; history: History }) {
  const { pending, scheduled } = sumCounts(now.groups.filter((group) => !isCanary(group)));
  const series = seriesOf(history);
  const { due } = series;
  const perMinute = (values: readonly number[]) => values.map((value) => value / history.minutes);
  const completed = perMinute(series.completed);
  const retried = perMinute(series.retried);
  const { died } = series; // counts, not rates: each one matters
  const times = timesOf(history);
  const at = (index: number) => minuteTime(times[index] ?? new Date(0));
  const last = (values: readonly number[]) => count(latestRate(values, history));
  return (
    <section class="card" aria-label={`Charts of the last ${rangeNames[history.range]}`}>
      <div class="charts">
        <Chart
          id="c-len"
          title="Waiting"
          unit="jobs that are due"
          now={
            <>
              now <b>{count(pending - scheduled)}</b>
            </>
          }
          times={times}
          series={[{ shape: "pending", values: due }]}
          describe={(index) => `${at(index)}: ${count(due[index] ?? 0)} due`}
        />
        <Chart
          id="c-done"
          title="Completed"
          unit="jobs a minute"
          now={
            <>
              now <b>{last(series.completed)}</b>
            </>
          }
          times={times}
          series={[{ shape: "completed", values: completed }]}
          describe={(index) => `${at(index)}: ${count(completed[index] ?? 0)} a minute`}
        />
        <Chart
          id="c-bad"
          title="Retries, deaths"
          unit="retries a minute, deaths"
          now={
            <>
              <span class="nw">
                <span class="key k-retrying" /> <b>{last(series.retried)}</b> retries
              </span>{" "}
              <span class="nw">
                <span class="key k-dead" /> <b>{count(died.reduce((sum, value) => sum + value, 0))}</b> deaths
              </span>
            </>
          }
          times={times}
          series={[
            { shape: "retrying", values: retried },
            { shape: "dead", values: died, as: "bars" },
          ]}
          describe={(index) =>
            `${at(index)}: ${count(retried[index] ?? 0)} retries a minute, ${count(died[index] ?? 0)} deaths`
          }
        />
      </div>
    </section>
  );
}
