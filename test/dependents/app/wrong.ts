// Every line with "wrong" in it must be an error, and no other.
import { defineJob } from "sluice";
import { createPuller } from "sluice/puller";
import { enqueue } from "sluice/sql";
import { runJob } from "sluice/test";
import { half, length, welcome, welcomeJob } from "./jobs.ts";
import { client, db } from "./use.ts";

export const right = () => enqueue(db, welcome, { name: "a" });
export const a = () => enqueue(db, welcome, { name: 1 }); // wrong: the payload's type (zod)
export const b = () => enqueue(db, length, { id: 1 }); // wrong: the payload's type (valibot)
export const c = () => enqueue(db, half, { n: "1" }); // wrong: the payload's type (arktype)
export const d = () => client.enqueue("welcom", { name: "a" }); // wrong: the type's name
export const e = () => client.enqueue("welcome", {}); // wrong: a missing field
export const f = () => enqueue(db, welcome, { name: "a" }, { delay: 1 }); // wrong: the option's name
export const g = defineJob(welcome, { run: () => ({ txt: "" }) }); // wrong: the output
export const h = defineJob(welcome, { run: (_, { env }) => ({ text: env.GREETNG }) }); // wrong: the binding's name
export const i = defineJob(welcome, { payload: welcome.payload, run: () => ({ text: "" }) }); // wrong: declared already
export const j = () => runJob(welcomeJob, { name: 1 }); // wrong: the payload of a test
const puller = createPuller<{ welcome: typeof welcome }>;
const at = { url: "https://sluice.example", key: "sk" };
export const k = () => puller({ ...at, handlers: { welcome: ({ nme }) => ({ text: nme }) } }); // wrong: the payload of a puller
export const l = () => puller({ ...at, handlers: { welcome: () => ({ txt: "" }) } }); // wrong: the output of a puller
export const m = () => puller({ ...at, handlers: { welcom: () => ({ text: "" }) } }); // wrong: the type's name in a puller
