// What the client reads of a job's definition: its name and the type of its payload, by the Standard Schema rules that
// zod follows. So a producer needs no more of the definition than its type.

export interface TypedJob {
  readonly type: string;
  readonly payload: { readonly "~standard": { readonly types?: { readonly input: unknown } | undefined } };
}

export type PayloadOf<Job> = Job extends {
  payload: { "~standard": { types?: { input: infer Input extends object } | undefined } };
}
  ? Input
  : never;
