// States as a shape and a word. Scheduled and retrying are views of the status `pending`.
import type { Job } from "../../core/job.ts";

/** The shapes as SVG, by the class of their colour. */
const shapes = {
  later: (
    <>
      <circle cx="7" cy="7" r="5.5" />
      <path d="M7 4v3l2 1.3" />
    </>
  ),
  pending: <circle cx="7" cy="7" r="5.5" />,
  retrying: <path d="M12.3 7.6A5.4 5.4 0 1 1 10.9 3.3L12.4 4.8M12.4 1.6v3.2H9.2" />,
  blocked: (
    <>
      <rect x="2.8" y="6.3" width="8.4" height="6" rx="1.2" />
      <path d="M4.7 6.3V4.4a2.3 2.3 0 0 1 4.6 0v1.9" />
    </>
  ),
  processing: (
    <>
      <circle cx="7" cy="7" r="5.5" />
      <path class="on" stroke="none" d="M7 3.8a3.2 3.2 0 0 1 0 6.4z" />
    </>
  ),
  completed: (
    <>
      <circle class="on" cx="7" cy="7" r="5.5" />
      <path class="cut" d="M4.6 7.2 6.3 8.9 9.5 5.4" />
    </>
  ),
  dead: (
    <>
      <path class="on" d="M4.7 1.5h4.6l3.2 3.2v4.6l-3.2 3.2H4.7L1.5 9.3V4.7z" />
      <path class="cut" d="M5.2 5.2l3.6 3.6M8.8 5.2 5.2 8.8" />
    </>
  ),
  cancelled: (
    <>
      <circle cx="7" cy="7" r="5.5" />
      <path d="M3.4 10.6l7.2-7.2" />
    </>
  ),
  discarded: (
    <>
      <circle class="on" cx="7" cy="7" r="5.5" />
      <path class="cut" d="M4.4 7h5.2" />
    </>
  ),
  paused: <path d="M4.7 3v8M9.3 3v8" />,
  missed: <path d="M3.5 7h7" />,
  silenced: <path d="M3.5 10V7a3.5 3.5 0 0 1 7 0v3l.8 1H2.7zM2 2l10 10" />,
  ok: (
    <>
      <circle class="on" cx="7" cy="7" r="5.5" />
      <path class="cut" d="M4.6 7.2 6.3 8.9 9.5 5.4" />
    </>
  ),
  alarm: (
    <>
      <path class="on" d="M4.7 1.5h4.6l3.2 3.2v4.6l-3.2 3.2H4.7L1.5 9.3V4.7z" />
      <path class="cut" d="M5.2 5.2l3.6 3.6M8.8 5.2 5.2 8.8" />
    </>
  ),
};

export type Shape = keyof typeof shapes;

/** Give it a `label` if no word stands beside it. */
export function StateShape({ shape, label }: { shape: Shape; label?: string }) {
  return label === undefined ? (
    <svg class={`s k-${shape}`} viewBox="0 0 14 14" aria-hidden="true">
      {shapes[shape]}
    </svg>
  ) : (
    <svg class={`s k-${shape}`} viewBox="0 0 14 14" role="img" aria-label={label}>
      <title>{label}</title>
      {shapes[shape]}
    </svg>
  );
}

/** The same inside of a picture. */
export function ShapeInPicture({ shape, x, y }: { shape: Shape; x: number; y: number }) {
  return (
    <g class={`s k-${shape}`} transform={`translate(${x} ${y})`}>
      {shapes[shape]}
    </g>
  );
}

/** With `isShort` phones show the shape alone. The word stays for screen readers. */
export function State({ shape, word, isShort }: { shape: Shape; word: string; isShort?: boolean }) {
  return (
    <span class="st">
      <StateShape shape={shape} />
      <span class={isShort ? "w" : undefined}>{word}</span>
    </span>
  );
}

export type StateOfJob = Pick<Job, "status" | "attempts" | "scheduledAt">;

export function shapeOfJob(
  { status, attempts, scheduledAt }: StateOfJob,
  now: Date,
): { shape: Shape; word: string } {
  if (status !== "pending") return { shape: status, word: status };
  if (attempts > 0 && scheduledAt > now) return { shape: "retrying", word: "retrying" };
  if (scheduledAt > now) return { shape: "later", word: "scheduled" };
  return { shape: "pending", word: "pending" };
}

export function JobState({ job, now, isShort }: { job: StateOfJob; now: Date; isShort?: boolean }) {
  return <State {...shapeOfJob(job, now)} {...(isShort && { isShort })} />;
}
