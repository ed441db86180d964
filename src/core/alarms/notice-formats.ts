// The body of a notice in each target format. Only the generic format is signed. PagerDuty recognizes the sender by a key
// in the body, and Slack by the URL.
import { alarmKey } from "./alarm.ts";
import { curlCommand, type NoticeBody } from "./notice.ts";

export const targetFormats = ["generic", "slack", "pagerduty"] as const;
export type TargetFormat = (typeof targetFormats)[number];

/** The limits of PagerDuty. */
const maxSummary = 1024;
const maxDedupKey = 255;

export function formatNotice(
  notice: NoticeBody,
  target: { format: TargetFormat; secrets: readonly string[] },
): object {
  switch (target.format) {
    case "generic":
      return notice;
    case "slack":
      return toSlack(notice);
    case "pagerduty":
      return toPagerDuty(notice, target.secrets[0] ?? "");
    default:
      return target.format satisfies never;
  }
}

const verbs = { "alarm.firing": "Firing", "alarm.resolved": "Resolved", "alarm.test": "Test" } as const;

function toSlack({ type, data }: NoticeBody): object {
  const title = `${verbs[type]}: ${data.alarm} (${data.severity}) in ${data.deployment}`;
  const numbers = data.value === null ? "" : `value ${data.value}, threshold ${data.threshold}, `;
  const lines = [
    `*${escapeSlack(title)}*`,
    escapeSlack(data.summary),
    escapeSlack(`${numbers}since ${data.since}`),
    `\`${escapeSlack(curlCommand(data.link))}\``,
    ...(data.runbook === null ? [] : [escapeSlack(`Runbook: ${data.runbook}`)]),
  ];
  return {
    text: escapeSlack(`${title}: ${data.summary}`),
    blocks: [{ type: "section", text: { type: "mrkdwn", text: lines.join("\n") } }],
  };
}

function escapeSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** The notice that an alarm is resolved has the same key as the one that it fired. Deployments have different keys. */
function toPagerDuty({ type, timestamp, data }: NoticeBody, routingKey: string): object {
  const key = alarmKey({ alarm: data.alarm, queue: data.queue, jobType: data.job_type });
  const links = [
    ...(/^https?:/.test(data.link) ? [{ href: data.link, text: "Look closer" }] : []),
    ...(data.runbook === null ? [] : [{ href: data.runbook, text: "Runbook" }]),
  ];
  return {
    routing_key: routingKey,
    event_action: type === "alarm.resolved" ? "resolve" : "trigger",
    dedup_key: `sluice/${data.deployment}/${key}`.slice(0, maxDedupKey),
    payload: {
      summary: `${data.alarm}: ${data.summary}`.slice(0, maxSummary),
      source: data.deployment,
      severity: type === "alarm.test" ? "info" : data.severity,
      timestamp,
      component: data.queue ?? "sluice",
      class: data.alarm,
      custom_details: { ...data, look: curlCommand(data.link) },
    },
    links,
  };
}
