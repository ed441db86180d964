// Calls back when the process is told to stop. Node and Bun have `process`, Deno has its own functions.

const names = ["SIGTERM", "SIGINT"];

interface SignalApi {
  add(name: string, listener: () => void): void;
  remove(name: string, listener: () => void): void;
}

/** Returns a function that removes the listeners. */
export function onStopSignal(listener: () => void): () => void {
  const api = findApi();
  const added = names.filter((name) => {
    try {
      api?.add(name, listener);
      return true;
    } catch {
      return false; // Windows does not have every signal
    }
  });
  return () => {
    for (const name of added) api?.remove(name, listener);
  };
}

interface Runtime {
  Deno?: {
    addSignalListener?: SignalApi["add"];
    removeSignalListener?: SignalApi["remove"];
  };
  process?: { on?: SignalApi["add"]; off?: SignalApi["remove"] };
}

function findApi(): SignalApi | undefined {
  const { Deno: deno, process } = globalThis as unknown as Runtime;
  if (deno?.addSignalListener && deno.removeSignalListener)
    return {
      add: (name, listener) => deno.addSignalListener?.(name, listener),
      remove: (name, listener) => deno.removeSignalListener?.(name, listener),
    };
  if (process?.on && process.off)
    return {
      add: (name, listener) => process.on?.(name, listener),
      remove: (name, listener) => process.off?.(name, listener),
    };
  return undefined;
}
