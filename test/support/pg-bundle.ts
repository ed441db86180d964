// `pg` for workerd, as wrangler bundles it: it is CommonJS, and workerd has Node's modules but no `require` for them.
import { builtinModules } from "node:module";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";

export const forWorkerd = {
  bundle: true,
  format: "esm" as const,
  target: "es2024",
  conditions: ["workerd", "worker", "browser"],
  external: ["node:*", "cloudflare:*"],
  write: false as const,
  logLevel: "error" as const,
};

export const nodeModules: Plugin = {
  name: "node modules",
  setup({ onResolve, onLoad }) {
    const names = new RegExp(`^(${builtinModules.filter((name) => !name.startsWith("_")).join("|")})$`);
    onResolve({ filter: names }, ({ path }) => ({ path, namespace: "node-module" }));
    onLoad({ filter: /.*/, namespace: "node-module" }, ({ path }) => ({
      contents: `import all from "node:${path}"; module.exports = all;`,
    }));
  },
};

/** For Vite, which hands workerd each file of a package by itself. One file of `pg` requires an ES module. */
export const bundledPg = {
  name: "bundled pg",
  enforce: "pre" as const,
  resolveId: (id: string) => (id === "pg" ? "\0pg" : undefined),
  async load(id: string) {
    if (id !== "\0pg") return undefined;
    const stdin = {
      contents: 'export { default } from "pg"',
      resolveDir: join(import.meta.dirname, "../.."),
    };
    const { outputFiles } = await build({ ...forWorkerd, stdin, plugins: [nodeModules] });
    return outputFiles[0]?.text;
  },
};
