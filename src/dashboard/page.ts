// What a page is: one entry of the table in pages.ts. A page reads what it shows with at most three statements and answers
// with JSX. It cannot change anything: that is what actions.ts is for.
import type { HtmlEscapedString } from "hono/utils/html";
import type { AlarmRule } from "../core/alarms/alarm.ts";
import type { Deployment } from "../core/alarms/notice.ts";
import type { Fault } from "../core/errors.ts";
import type { Role } from "../core/key.ts";
import type { JobRegistry } from "../jobs/registry.ts";
import type { KeyedTarget } from "../queue/alarms/notify.ts";
import type { Database } from "../queue/ports.ts";

export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

/** The names of the links in the menu. Each page belongs to one. */
export const sections = [
  "Overview",
  "Jobs",
  "Dead letters",
  "Flows",
  "Types",
  "Queues",
  "Schedules",
  "Alarms",
  "Workers",
  "Keys",
  "Audit",
] as const;
export type Section = (typeof sections)[number];

export interface Page {
  /** As Hono writes it: `/jobs/:id`. */
  path: string;
  section: Section;
  render(request: PageRequest): Promise<Content>;
}

export interface Content {
  /** The page's only h1, and the beginning of the browser's title. */
  title: string;
  /** Right of the title: a state, a line of facts. */
  facts?: Html | undefined;
  /** At the right end: buttons and choices. */
  tools?: Html | undefined;
  /** Above the title. */
  crumbs?: Html | undefined;
  body: Html;
}

export interface PageRequest {
  db: Database;
  registry: JobRegistry;
  now: Date;
  settings: PageSettings;
  viewer: Viewer;
  refusal?: Refusal | undefined;
  url: URL;
  query: URLSearchParams;
  /** Of the path, such as `id`. */
  param(name: string): string;
  /** Since when the crons leave the idle database alone. Null if it is awake, or if nobody can tell. */
  asleepSince(): Promise<Date | null>;
}

/** A form that was refused. The page shows it again as it was filled in. */
export interface Refusal {
  /** Of actions.ts. */
  action: string;
  form: URLSearchParams;
  status: number;
  /** Why, as a sentence. */
  text: string;
  /** Of fields, as the API names them. */
  faults: readonly Fault[];
}

export interface PageSettings {
  /** The setting SLUICE_ENVIRONMENT. */
  environment: string | undefined;
  deployment: Deployment;
  schema: string;
  alarmRules: readonly AlarmRule[];
  alarmTargets: readonly KeyedTarget[];
}

export interface Viewer {
  name: string;
  role: Role;
  /** Pages leave out the actions of everybody else. The server checks the role again when an action is called. */
  mayChange: boolean;
}
