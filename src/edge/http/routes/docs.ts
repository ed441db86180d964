// GET /openapi.json, and GET /docs: the same for people. The page loads nothing from other hosts.
import type { Context } from "hono";
import { html } from "hono/html";
import { openapiDocument } from "../../../contract/openapi.ts";
import type { Operation } from "../../../contract/operation.ts";
import { operations } from "../../../contract/operations.ts";

export const showOpenapi = (context: Context) => context.json(openapiDocument());

export const showDocs = (context: Context) => {
  context.header(
    "content-security-policy",
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  return context.html(html`<!doctype html>
    <html lang="en">
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width" />
      <title>Sluice API</title>
      <style>
        body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
        table { border-collapse: collapse; width: 100%; }
        th, td { text-align: left; padding: 0.4rem 0.8rem 0.4rem 0; border-bottom: 1px solid #ddd; vertical-align: top; }
        code { font-family: ui-monospace, monospace; }
      </style>
      <h1>Sluice API</h1>
      <p>
        Send the key as <code>Authorization: Bearer &lt;key&gt;</code>. Errors are problem documents (RFC 9457). Every
        field is in <a href="/openapi.json">openapi.json</a>.
      </p>
      <table>
        <tr><th>request</th><th>description</th><th>roles</th><th>status</th></tr>
        ${Object.values<Operation>(operations).map(row)}
      </table>
    </html>`);
};

function row(operation: Operation) {
  const roles = operation.roles ? [...operation.roles, "admin"].join(", ") : "none";
  return html`<tr>
    <td><code>${operation.method.toUpperCase()} ${operation.path}</code></td>
    <td>${operation.summary}</td>
    <td>${roles}</td>
    <td>${Object.keys(operation.answers).join(", ")}</td>
  </tr>`;
}
