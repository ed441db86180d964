// Keys: make one, revoke one. A key itself is shown only once, when it is made.
import { defaultRateLimitPerSecond, type Role, roles } from "../../core/key.ts";
import { listKeys } from "../../core/sql/index.ts";
import type { Page, PageRequest } from "../page.ts";
import { ActionForm, actionsColumn, Choice, Input, refusalOf } from "../parts/action-form.tsx";
import { Card, Definitions, Empty } from "../parts/card.tsx";
import { count } from "../parts/numbers.ts";
import { State } from "../parts/state.tsx";
import { None, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

/** Revoked keys are at the end, so what is cut off are the oldest of those. */
const maxKeys = 200;

export const keys: Page = {
  path: "/keys",
  section: "Keys",
  async render(request) {
    const found = await request.db.run(listKeys({ limit: maxKeys }));
    return {
      title: "Keys",
      body: (
        <>
          <div class={request.viewer.mayChange ? "two" : undefined}>
            {request.viewer.mayChange ? <NewKey request={request} /> : null}
            <Roles />
          </div>
          {found.length === 0 ? (
            <Empty title="No keys yet">
              So far only SLUICE_ADMIN_KEY works. Each producer, worker and person should have a key of their
              own.
            </Empty>
          ) : (
            <div class="card">
              <Table
                name="Keys"
                rows={found}
                columns={[
                  { title: "Name", class: "wide", cell: ({ name }) => name },
                  { title: "Role", cell: ({ role }) => role },
                  {
                    title: "Types",
                    class: "hide-m",
                    cell: ({ jobTypes }) => (jobTypes ? jobTypes.join(", ") : <None text="all" />),
                  },
                  {
                    title: "Requests a second",
                    class: "n hide-m",
                    cell: ({ rateLimitPerSecond }) => count(rateLimitPerSecond),
                  },
                  {
                    title: "Made",
                    class: "n hide-s",
                    cell: (key) => <Time at={key.createdAt} now={request.now} />,
                  },
                  {
                    title: "Used",
                    class: "n",
                    cell: ({ lastUsedAt }) =>
                      lastUsedAt ? <Time at={lastUsedAt} now={request.now} /> : <None text="never" />,
                  },
                  {
                    title: "State",
                    class: "nw",
                    cell: ({ revokedAt }) =>
                      revokedAt ? (
                        <State shape="cancelled" word="revoked" />
                      ) : (
                        <State shape="ok" word="works" />
                      ),
                  },
                  ...actionsColumn<(typeof found)[number]>(request, ({ id, name, revokedAt }) =>
                    revokedAt ? null : (
                      <ActionForm
                        request={request}
                        action="revokeKey"
                        fields={{ id }}
                        label="Revoke"
                        kind="danger"
                        confirm={`Revoke the key "${name}"? Whoever uses it is refused within 10 seconds.`}
                      />
                    ),
                  ),
                ]}
              />
            </div>
          )}
        </>
      ),
    };
  },
};

/** What each role may do. Whatever a role may do, an admin may do too. */
const rights: Record<Role, string> = {
  producer: "enqueues jobs and flows, looks at them, cancels and resolves them, sends signals",
  worker: "pulls jobs of types that are pulled, and settles them",
  viewer: "reads everything, also in this dashboard, and changes nothing",
  admin: "does everything: pauses, replays, discards, makes and revokes keys",
};

function Roles() {
  return (
    <Card id="roles" title="Roles">
      <Definitions entries={roles.map((role) => [role, rights[role]])} />
    </Card>
  );
}

function NewKey({ request }: { request: PageRequest }) {
  const refusal = refusalOf(request, "addKey");
  return (
    <Card id="new-key" title="New key">
      <div class="pad">
        <ActionForm request={request} action="addKey" label="Make a key" kind="main">
          <div class="two">
            <Input
              refusal={refusal}
              name="name"
              label="Name"
              hint="Who uses it. The audit log shows this name."
              control={{ required: true, maxlength: 100 }}
            />
            <Choice refusal={refusal} name="role" label="Role" options={roles.map((role) => [role, role])} />
          </div>
          <div class="two">
            <Input
              refusal={refusal}
              name="job_types"
              label="Only these types"
              hint="Of a producer. Empty: all."
              control={{ placeholder: "send_email, send_receipt" }}
            />
            <Input
              refusal={refusal}
              name="rate_limit_per_second"
              label="Requests a second"
              hint={`Empty: ${count(defaultRateLimitPerSecond)}.`}
              control={{ type: "number", min: 1, max: 1_000_000 }}
            />
          </div>
        </ActionForm>
      </div>
    </Card>
  );
}
