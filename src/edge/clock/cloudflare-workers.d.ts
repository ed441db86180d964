// What the clock uses of this module of the platform. Its full types are global ones, which a user's project brings.
declare module "cloudflare:workers" {
  type Base = new (context: unknown, env: unknown) => object;
  export const DurableObject: Base;
  export const WorkerEntrypoint: Base;
}
