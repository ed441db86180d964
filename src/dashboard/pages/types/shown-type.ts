// A type as the pages show it: its definition in this deployment, its counts and what it did in the last hour.
import { isCanary } from "../../../core/alarms/alarm.ts";
import type { Percentiles } from "../../../core/durations.ts";
import { books, typeNumbers } from "../../../core/sql/index.ts";
import type { TypeNumbers } from "../../../core/sql/type-numbers.ts";
import type { JobDefinition } from "../../../jobs/define.ts";
import type { PageRequest } from "../../page.ts";
import { type ShownCounts, sumCounts } from "../../parts/books.ts";
import { duration } from "../../parts/numbers.ts";

export interface ShownType extends TypeNumbers {
  /** Undefined: this deployment has no such type, but there are or were jobs of it. */
  definition: JobDefinition | undefined;
  counts: ShownCounts;
  isOpen: boolean;
  /** From 0 to 1. Null: no attempt ended. */
  failureRate: number | null;
}

export async function readTypes({ db, registry }: PageRequest): Promise<ShownType[]> {
  const definitions = registry.all().filter((definition) => !isCanary(definition));
  const [rows, numbers] = await Promise.all([db.run(books()), db.run(typeNumbers(definitions))]);
  return numbers
    .filter((own) => !isCanary(own))
    .map((own) => ({
      ...own,
      definition: registry.find(own.type),
      counts: sumCounts(rows.filter(({ type }) => type === own.type)),
      isOpen: own.breaker !== null && own.breaker.closedAt === null,
      failureRate: own.completed + own.failed === 0 ? null : own.failed / (own.completed + own.failed),
    }))
    .toSorted((a, b) => a.type.localeCompare(b.type));
}

/** "0.2 s, 1.9 s". */
export function formatPercentiles(percentiles: Percentiles | null): string | null {
  if (!percentiles) return null;
  return [percentiles.p50Seconds, percentiles.p95Seconds]
    .map((seconds) => duration(seconds * 1000))
    .join(", ");
}

export function formatShare(share: number): string {
  const percent = share * 100;
  return `${percent > 0 && percent < 1 ? "<1" : Math.round(percent)} %`;
}

/** "2 of 5 running", "30 of 100 started in 1 min". */
export function limitsInUse({ definition, inUse }: ShownType): string[] {
  const { concurrency, rate } = definition?.limits ?? {};
  return [
    ...(concurrency && inUse ? [`${inUse.running} of ${concurrency} running`] : []),
    ...(rate && inUse
      ? [`${inUse.started} of ${rate.limit} started in ${duration(rate.perSeconds * 1000)}`]
      : []),
  ];
}
