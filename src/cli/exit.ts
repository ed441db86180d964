// How a command ends: its exit codes, and the errors that carry one.

export const exitCodes = {
  ok: 0,
  /** The request was refused, or the job did not complete. */
  failed: 1,
  /** A wrong command, argument or flag. */
  usage: 2,
  /** No answer from the Worker or the database, or an answer that says that the database cannot work now. */
  outOfReach: 3,
  /** `check` found dead letters or firing alarms, `doctor` found a problem. */
  found: 4,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Its message is a sentence for the user. */
export class CommandError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = exitCodes.failed, options: ErrorOptions = {}) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

export function usageError(message: string): CommandError {
  return new CommandError(message, exitCodes.usage);
}
