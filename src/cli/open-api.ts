// Opens the way to Sluice that the user has chosen. The API itself is loaded only if it is called over SQL.
import { type Api, createApi } from "./api.ts";
import type { Where } from "./where.ts";

export async function openApi(where: Where, env: NodeJS.ProcessEnv): Promise<Api> {
  if (where.kind === "database") {
    const { openDatabase } = await import("./over-sql.ts");
    return createApi(await openDatabase(where, env));
  }
  return createApi({
    fetch: (request) => fetch(request),
    baseUrl: where.url,
    key: where.key,
    words: where.url,
    isOverSql: false,
    close: async () => {},
  });
}
