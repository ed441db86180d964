// Compares where all jobs of the flows' gate ended with what their blockers came to.
import type { FlowsGate } from "./flows-gate.ts";

export interface Verdict {
  /** Jobs that have not ended. */
  stuck: string[];
  /** Jobs that were completed twice. */
  twice: string[];
  /** Completed by a worker, although a blocker whose end should have killed them did not complete. */
  survived: string[];
  /** Dead because of a blocker that completed, or that is not dead. */
  wronglyDead: string[];
  waited: number;
}

export const nothingWrong = {
  ...{ stuck: [], twice: [], survived: [], wronglyDead: [], wrong: [], swept: 0, early: [] },
};

const ends = `
  with ended as (
    select unnest(ids) as id, 'completed' as status from sluice.done
    union all select id, status from sluice.closed
  ),
  waited as (
    select dependency.id, dependency.dies, ended.status, blocker, sluice.last_of_chain(blocker) as last
    from sluice.dependency left join ended using (id) cross join lateral unnest(blockers) as blocker
  )
  select
    (select coalesce(json_agg(json_build_object('id', id, 'blocked', (select to_json(blocked) from sluice.blocked where blocked.id = job.id),
       'edges', (select json_agg(edge) from sluice.edge join sluice.blocked using (wait) where blocked.id = job.id))), '[]')
     from sluice.job where not exists (select from ended where ended.id = job.id)) as stuck,
    (select coalesce(json_agg(distinct waited.id), '[]') from waited left join ended on ended.id = last
     where waited.status = 'completed' and dies and ended.status <> 'completed') as survived,
    (select coalesce(json_agg(closed.id), '[]') from sluice.closed left join ended on ended.id = closed.culprit
     where closed.status = 'dead' and reason = 'blocker' and ended.status = 'completed') as wrongly_dead,
    (select last_value::int from sluice.wait_number) as waited -- also those that were pruned`;

export async function judge({ pool, resolved, completed }: FlowsGate): Promise<Verdict> {
  const { rows } = await pool.query(ends);
  const { stuck, survived, wrongly_dead: wronglyDead, waited } = rows[0];
  return {
    stuck: stuck.map((job: object) => JSON.stringify(job)).slice(0, 3),
    twice: [...completed].filter(([, times]) => times > 1).map(([id]) => id),
    survived: survived.filter((id: string) => !resolved.has(id)),
    ...{ wronglyDead, waited },
  };
}
