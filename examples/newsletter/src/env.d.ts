// What the Worker has: `npx wrangler types` can write this file.
declare namespace Cloudflare {
  interface Env {
    HYPERDRIVE: { connectionString: string };
    SELF: { fetch(url: string, init: RequestInit): Promise<Response> };
    SLUICE_ADMIN_KEY: string;
    PUBLIC_URL: string;
    MAIL_URL: string;
    CONTACTS_URL: string;
    NEWS_URL: string;
    NEWS_SECRET: `whsec_${string}`;
    EDITOR: string;
  }
}
