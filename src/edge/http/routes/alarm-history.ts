// What has happened to alarms: silence one, list events and deliveries.
import type { Context } from "hono";
import * as z from "zod";
import type { AlarmHistoryPage, DeliveryPage } from "../../../contract/alarms.ts";
import { type AlarmName, alarmNames } from "../../../core/alarms/alarm.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { AlarmEvent } from "../../../core/sql/alarms.ts";
import type { Delivery } from "../../../core/sql/deliver.ts";
import * as sql from "../../../core/sql/index.ts";
import type { AppEnv } from "../app-env.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import type { Handlers } from "../operation-routes.ts";

export const silenceOneAlarm: Handlers["silenceOneAlarm"] = async (context, { body }) => {
  const alarm = alarmInPath(context);
  const nowMs = context.env.ports.clock.nowMs();
  const untilMs = body.until === undefined ? nowMs + (body.minutes ?? 0) * 60_000 : Date.parse(body.until);
  if (untilMs <= nowMs)
    throw new SluiceError("request_invalid", "until lies in the past", {
      faults: [{ path: "until", message: "must lie in the future" }],
    });
  const until = new Date(untilMs);
  await silence(context, { alarm, until, reason: body.reason });
  return context.json({ alarm, silenced_until: until.toISOString() });
};

export const unsilenceAlarm: Handlers["unsilenceAlarm"] = async (context, { body: { reason } }) => {
  const alarm = alarmInPath(context);
  await silence(context, { alarm, until: new Date(0), reason });
  return context.json({ alarm, silenced_until: null });
};

export const listAlarmHistory: Handlers["listAlarmHistory"] = async (context, { query }) => {
  const events = await context.env.ports.db.run(sql.listAlarmEvents(toPage(query)));
  const body: AlarmHistoryPage = {
    events: events.map(toEventResponse),
    next_cursor: nextCursor(events, query.limit, ({ id }) => id),
  };
  return context.json(body);
};

export const listDeliveries: Handlers["listDeliveries"] = async (context, { query }) => {
  const deliveries = await context.env.ports.db.run(sql.listDeliveries(toPage(query)));
  const body: DeliveryPage = {
    deliveries: deliveries.map(toDeliveryResponse),
    next_cursor: nextCursor(deliveries, query.limit, ({ seq }) => seq),
  };
  return context.json(body);
};

function alarmInPath(context: Context<AppEnv>): AlarmName {
  const name = context.req.param("alarm") ?? "";
  const alarm = alarmNames.find((known) => known === name);
  if (!alarm) throw new SluiceError("not_found", `there is no alarm "${name}"`);
  return alarm;
}

function silence(
  context: Context<AppEnv>,
  { reason = null, ...of }: { alarm: AlarmName; until: Date; reason?: string | null | undefined },
): Promise<void> {
  return context.env.ports.db.run(sql.silenceAlarm(context.get("caller").actor, { ...of, reason }));
}

/** A number of up to 18 digits always fits a bigint. */
const position = z.string().regex(/^\d{1,18}$/);

function toPage({ cursor, limit }: { cursor?: string | undefined; limit: number }) {
  return { before: cursor === undefined ? undefined : decodeCursor(cursor, position), limit };
}

function nextCursor<Row>(rows: readonly Row[], limit: number, placeOf: (row: Row) => string): string | null {
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return last ? encodeCursor(placeOf(last)) : null;
}

function toEventResponse({ jobType, ...event }: AlarmEvent): AlarmHistoryPage["events"][number] {
  return {
    ...event,
    job_type: jobType,
    at: event.at.toISOString(),
    since: event.since?.toISOString() ?? null,
    until: event.until?.toISOString() ?? null,
  };
}

function toDeliveryResponse(delivery: Delivery): DeliveryPage["deliveries"][number] {
  const { id, target, alarm, queue, state, tries, status, error } = delivery;
  return {
    ...{ id, target, alarm, queue, state, tries, status, error },
    job_type: delivery.jobType,
    type: delivery.noticeType,
    created_at: delivery.createdAt.toISOString(),
    next_try_at: delivery.nextTryAt?.toISOString() ?? null,
    ended_at: delivery.endedAt?.toISOString() ?? null,
  };
}
