// The API in this process, over plain SQL: for when the Worker is down. Every command works as it does over HTTP, because
// it is the same code behind another `fetch`. There is no Worker here that could run jobs, so nothing is nudged: new jobs
// start with the next cron.
import { Hono } from "hono";
import { SluiceError } from "../core/errors.ts";
import { defaultSchema } from "../core/schema-name.ts";
import { books } from "../core/sql/index.ts";
import { createAlarmClock } from "../edge/clock/alarm-clock.ts";
import { createDatabase } from "../edge/database/create-database.ts";
import type { Transport } from "../edge/database/transport.ts";
import { addApi } from "../edge/http/api.ts";
import type { AppEnv } from "../edge/http/app-env.ts";
import { problemResponse } from "../edge/http/codec/problem.ts";
import { createPgTransport } from "../edge/hyperdrive/pg-transport.ts";
import { isolateStateFor } from "../edge/isolate-state.ts";
import { parseSettings, type Settings } from "../edge/settings/env.ts";
import { systemClock } from "../edge/system-clock.ts";
import { createSender } from "../edge/webhook-sender.ts";
import type { JobRegistry } from "../jobs/registry.ts";
import { createConnections } from "../queue/outgoing/connections.ts";
import type { Log } from "../queue/ports.ts";
import type { ApiOptions } from "./api.ts";
import { explainConnectError, parseTarget } from "./connect.ts";
import { usageError } from "./exit.ts";
import { knownTypes } from "./known-types.ts";
import { addWhatNode20Lacks } from "./older-node.ts";

/** Nothing is sent there. */
const baseUrl = "http://over-sql.invalid";
const answerWithinMs = 30_000;

interface Place {
  databaseUrl: string;
  /** Where the URL came from, for errors: a variable or a flag. */
  source: string;
}

export async function openDatabase(place: Place, env: NodeJS.ProcessEnv): Promise<ApiOptions> {
  addWhatNode20Lacks();
  const { databaseUrl } = place;
  const settings = await readSettings(place, env);
  const transport = openTransport(place);
  const db = createDatabase(transport, {
    schema: settings.schema,
    timeoutMs: answerWithinMs,
    isolate: isolateStateFor(settings),
  });
  const { words, actor } = nameOf(databaseUrl, settings.schema);
  const app = new Hono<AppEnv>();
  addApi(app);
  const started: Promise<unknown>[] = [];
  const waitUntil = (work: Promise<unknown>) => void started.push(work);
  let registry: JobRegistry | undefined;

  async function answer(request: Request): Promise<Response> {
    const bindings = createBindings(settings, waitUntil);
    const log = bindings.basics.log;
    try {
      registry ??= knownTypes(await db.run(books()));
    } catch (error) {
      return problemResponse(error, {}, log);
    }
    const { isolate, alarmClock, sender, basics } = bindings;
    const ports = {
      ...basics,
      db,
      sender,
      registry,
      random: Math.random,
      connections: createConnections(),
      env: {},
      wakeIn: () => {},
      hasClock: false,
    };
    const caller = { name: actor, role: "admin", types: null, actor } as const;
    const env = { settings, isolate, alarmClock, sender, ports, caller, nudge: () => {} };
    const context = { waitUntil, passThroughOnException() {}, props: {} };
    return app.fetch(request, env, context as never);
  }

  return {
    fetch: answer,
    baseUrl,
    key: "",
    words,
    isOverSql: true,
    async close() {
      await Promise.allSettled(started);
      await transport.close();
    },
  };
}

/** A plain connection: no Hyperdrive is in between that could have a cache. Errors of the connection say what to do. */
function openTransport({ databaseUrl, source }: Place): Transport {
  const transport = createPgTransport(databaseUrl);
  const isAboutConnection = (error: unknown) => /^(|28.*|3D000)$/.test(transport.sqlstateOf(error));
  return {
    ...transport,
    mayCache: false,
    explain(error, cause) {
      if (!isAboutConnection(error)) return undefined;
      const words = explainConnectError(error as Error, new URL(databaseUrl)).replaceAll(
        "DATABASE_URL",
        source,
      );
      return new SluiceError("database_unavailable", words, { cause });
    },
  };
}

function createBindings(settings: Settings, waitUntil: (work: Promise<unknown>) => void) {
  const isolate = isolateStateFor(settings);
  const basics = { clock: systemClock, log: bugLog };
  const alarmClock = createAlarmClock({ settings, isolate, ports: basics, waitUntil });
  return {
    isolate,
    basics,
    alarmClock,
    sender: createSender({ allowPrivate: settings.allowPrivateTargets }),
  };
}

/** The error that a command ends with says all. Only a bug has more to say: its stack. */
const bugLog: Log = {
  info: () => {},
  warn: () => {},
  error: (_, fields) => {
    if (fields?.code === "internal") process.stderr.write(`${fields.cause ?? fields.message}\n`);
  },
};

/** The SLUICE_… variables of this environment stand for those of the Worker: the targets of a test notice, for example. */
async function readSettings({ databaseUrl, source }: Place, env: NodeJS.ProcessEnv): Promise<Settings> {
  try {
    parseTarget(databaseUrl);
  } catch (error) {
    throw usageError((error as Error).message.replaceAll("DATABASE_URL", source));
  }
  const own = Object.entries(env).filter(([name]) => name.startsWith("SLUICE_"));
  const bindings = {
    ...Object.fromEntries(own),
    DATABASE_URL: databaseUrl,
    SLUICE_ADMIN_KEY: crypto.randomUUID(), // nobody can call it over the network
  };
  return parseSettings(bindings).catch((error: Error) => {
    throw usageError(error.message);
  });
}

/** The name of the caller in the audit log has the role's name. No word has the password. */
function nameOf(databaseUrl: string, schema: string): { words: string; actor: string } {
  const { host, pathname, username } = new URL(databaseUrl);
  const inSchema = schema === defaultSchema ? "" : ` (schema ${schema})`;
  return {
    words: `the database ${decodeURIComponent(pathname.slice(1))} at ${host || "localhost"}${inSchema}`,
    actor: `sluice cli (${decodeURIComponent(username) || "unknown role"})`,
  };
}
