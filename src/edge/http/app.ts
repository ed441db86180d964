// The Worker's app. The routes are built once per isolate. Everything that belongs to one request comes as Hono's bindings, so
// nothing of a request outlives it.
import { Hono } from "hono";
import { addApi } from "./api.ts";
import type { AppEnv } from "./app-env.ts";

export const app = new Hono<AppEnv>();
addApi(app);
