// Tells the types of workerd which module the Worker under test is.
declare namespace Cloudflare {
  interface GlobalProps {
    mainModule: typeof import("../../src/worker.ts");
  }
}
