/** How the supernets are trained: what matters first, all else by group behind a fold. */

import { Card } from "../ui/Card";
import { useForm } from "./context";
import { AnyField, Findings, NumberField } from "./Field";
import { Fold } from "./Fold";
import { BASIC, grouped, labelOf } from "./groups";
import { Ranges } from "./Ranges";
import { resolved, schemaAt } from "./schema";

export function SearchCard() {
  const { schema } = useForm();
  const method = resolved(schema, schemaAt(schema, "/method") ?? {});
  const groups = grouped(Object.keys(method.properties ?? {}));
  const folded = groups.flatMap(({ names }) => names.map((name) => `/method/${name}`));
  return (
    <Card title="Search">
      <div className="fields">
        {BASIC.map((name) => (
          <NumberField key={name} pointer={`/method/${name}`} label="Weight updates" hint="of each supernet" />
        ))}
        <NumberField pointer="/trials/n_seeds" label="Seeds" hint="supernets apart by chance alone" />
        <NumberField pointer="/trials/seed" label="First seed" hint="the others follow" />
      </div>
      <Findings pointer="/method" />
      <Fold summary="More of the training" parts={folded}>
        {groups.map(({ title, names }) => (
          <section key={title} className="method-group" aria-label={title}>
            <h3 className="form-heading">{title}</h3>
            <div className="fields fields-told">
              {names.map((name) => (
                <AnyField key={name} pointer={`/method/${name}`} label={labelOf(name)} />
              ))}
            </div>
          </section>
        ))}
      </Fold>
      <Ranges />
    </Card>
  );
}
