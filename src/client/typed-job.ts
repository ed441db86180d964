// The part of a job's definition that the client needs: its name and the type of its payload, as Standard Schema
// describes it. So a producer imports only the definition's type.

export interface TypedJob {
  readonly type: string;
  readonly payload: { readonly "~standard": { readonly types?: { readonly input: unknown } | undefined } };
}

export type PayloadOf<Job> = Job extends {
  payload: { "~standard": { types?: { input: infer Input extends object } | undefined } };
}
  ? Input
  : never;
