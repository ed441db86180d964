// A notice as targets get it: what was seen, the threshold, since when, and where to look closer.
import type { Notice } from "./alarm.ts";

export interface NoticeBody {
  type: "alarm.firing" | "alarm.resolved" | "alarm.test";
  timestamp: string;
  data: {
    alarm: Notice["alarm"];
    severity: Notice["severity"];
    queue: string | null;
    job_type: string | null;
    value: number | null;
    threshold: number | null;
    since: string;
    summary: string;
    link: string;
    runbook: string;
  };
}

/** `publicUrl`: where the deployment answers, if it knows. */
export function noticeBody(notice: Notice, publicUrl: string | undefined): NoticeBody {
  const { alarm, severity, queue, jobType, value, threshold, summary } = notice;
  return {
    type: `alarm.${notice.kind}`,
    timestamp: notice.at.toISOString(),
    data: {
      ...{
        alarm,
        severity,
        queue,
        job_type: jobType,
        value,
        threshold,
        since: notice.since.toISOString(),
        summary,
      },
      link: linkOf(notice, publicUrl),
      runbook: runbookOf(alarm),
    },
  };
}

type Subject = Pick<Notice, "alarm" | "queue" | "jobType">;

export function linkOf(subject: Subject, publicUrl: string | undefined): string {
  return `${publicUrl?.replace(/\/+$/, "") ?? ""}${pathOf(subject)}`;
}

/** In this repository. */
export function runbookOf(alarm: Notice["alarm"]): string {
  return `docs/alarms.md#${alarm}`;
}

export function curlOf(link: string): string {
  return `curl -H "authorization: Bearer $SLUICE_KEY" '${link}'`;
}

function pathOf({ alarm, queue, jobType }: Subject): string {
  const query = (fields: Record<string, string | null>) =>
    Object.entries(fields)
      .flatMap(([field, value]) => (value === null ? [] : [`${field}=${encodeURIComponent(value)}`]))
      .join("&");
  switch (alarm) {
    case "dead_letters":
      return `/v1/admin/dlq?${query({ type: jobType })}`;
    case "job_expired":
      return `/v1/admin/dlq?${query({ type: jobType, reason: "expired" })}`;
    case "queue_length_high":
    case "queue_growing":
    case "oldest_pending_high":
      return `/v1/jobs?${query({ status: "pending", queue, type: jobType })}`;
    case "breaker_open":
      return "/v1/admin/job-types";
    case "target_failing":
    case "test":
      return "/v1/admin/alarms";
    default:
      return "/v1/stats";
  }
}
