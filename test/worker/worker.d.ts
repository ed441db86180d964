// Declares which module is the Worker under test, for the types of workerd.
declare namespace Cloudflare {
  interface GlobalProps {
    mainModule: typeof import("../../src/worker.ts");
  }
}
