// A notice as it is sent to targets: the value, the threshold, since when, and links to the details.
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
    /** The name of the deployment: staging and production may have the same target. */
    deployment: string;
    link: string;
    /** Null if the settings have no URL of runbooks. */
    runbook: string | null;
  };
}

/** The deployment's name and addresses, from its settings. */
export interface Deployment {
  name: string;
  /** The URL of its API. */
  publicUrl: string | undefined;
  /** A page with a section for each alarm, like docs/alarms.md. */
  runbookUrl: string | undefined;
}

export function noticeBody(notice: Notice, deployment: Deployment): NoticeBody {
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
      deployment: deployment.name,
      link: alarmLink(notice, deployment),
      runbook: runbookLink(notice, deployment),
    },
  };
}

type Subject = Pick<Notice, "alarm" | "queue" | "jobType">;

export function alarmLink(subject: Subject, { publicUrl }: Deployment): string {
  return `${publicUrl?.replace(/\/+$/, "") ?? ""}${detailsPath(subject)}`;
}

export function runbookLink({ alarm }: Pick<Notice, "alarm">, { runbookUrl }: Deployment): string | null {
  return runbookUrl === undefined ? null : `${runbookUrl.replace(/#.*$/, "")}#${alarm}`;
}

export function curlCommand(link: string): string {
  return `curl -H "authorization: Bearer $SLUICE_KEY" '${link}'`;
}

function detailsPath({ alarm, queue, jobType }: Subject): string {
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
    case "partition_blocked":
      return `/v1/admin/queues/${queue}/partitions?blocked=true`;
    case "flow_stalled":
      return "/v1/flows";
    case "breaker_open":
      return "/v1/admin/job-types";
    case "target_failing":
    case "test":
      return "/v1/admin/alarms";
    default:
      return "/v1/stats";
  }
}
