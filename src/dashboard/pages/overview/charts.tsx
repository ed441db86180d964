// The three charts: what waits, what is completed, what goes wrong.
import type { History } from "../../history.ts";
import { Chart } from "../../parts/chart.tsx";
import { count, minuteTime } from "../../parts/numbers.ts";

export function Charts({ history, rangeName }: { history: History; rangeName: string }) {
  const { times, due, dueNow, completed, failed, expired } = history;
  const at = (index: number) => minuteTime(times[index] ?? new Date(0));
  const last = (values: readonly number[]) => count(values.at(-1) ?? 0);
  return (
    <section class="card" aria-label={`Charts of the last ${rangeName}`}>
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
              last <b>{last(completed)}</b>
            </>
          }
          times={times}
          series={[{ shape: "completed", values: completed }]}
          describe={(index) => `${at(index)}: ${count(completed[index] ?? 0)} a minute`}
        />
        <Chart
          id="c-bad"
          title="Failed, expired"
          unit="a minute"
          now={
            <>
              <span class="nw">
                <span class="key k-retrying" /> <b>{last(failed)}</b> failed
              </span>{" "}
              <span class="nw">
                <span class="key k-dead" /> <b>{last(expired)}</b> expired
              </span>
            </>
          }
          times={times}
          series={[
            { shape: "retrying", values: failed },
            { shape: "dead", values: expired, as: "bars" },
          ]}
          describe={(index) =>
            `${at(index)}: ${count(failed[index] ?? 0)} failed, ${count(expired[index] ?? 0)} expired`
          }
        />
      </div>
    </section>
  );
}
