/** Settings of the search that Optuna draws: how many, what varies between which ends, and whether those behind end early. */

import { Button } from "../ui/Button";
import { useForm } from "./context";
import { CheckField, ChoiceField, Findings, NumberField } from "./Field";
import { Fold } from "./Fold";
import { labelOf } from "./groups";
import type { Json } from "./json";
import { get } from "./pointer";
import { rangeAround, varying } from "./varying";

const SAMPLES = 8; // to begin with

export function Ranges() {
  const { schema, value, change } = useForm();
  const found = get(value, "/ranges");
  const ranges = Array.isArray(found) ? found : [];
  const taken = ranges.map((each) => String(get(each, "/pointer") ?? ""));
  const names = varying(schema);
  const free = names.filter((name) => !taken.includes(`/method/${name}`));
  const add = (name: string) => {
    const parts: [string, Json][] = [["/ranges", [...ranges, rangeAround(schema, value, name)]]];
    if (get(value, "/trials/n_samples") === 1) parts.push(["/trials/n_samples", SAMPLES]);
    change(...parts);
  };
  const remove = (at: number) => {
    const left = ranges.filter((_, other) => other !== at);
    const parts: [string, Json][] = [["/ranges", left]];
    if (left.length === 0) parts.push(["/trials/n_samples", 1]);
    change(...parts);
  };
  return (
    <Fold
      summary={
        <>
          Settings that vary{" "}
          <span className="quieter">
            {ranges.length ? taken.map((each) => each.replace("/method/", "")).join(", ") : "none: one setting"}
          </span>
        </>
      }
      parts={["/ranges", "/trials/n_samples", "/trials/pruner"]}
    >
      <ul className="ranges" aria-label="ranges">
        {ranges.map((_, at) => (
          <li key={at}>
            <div className="fields fields-told">
              <ChoiceField
                pointer={`/ranges/${at}/pointer`}
                label="What varies"
                hint=""
                choices={names.map((name) => ({ value: `/method/${name}`, words: labelOf(name) }))}
              />
              <NumberField pointer={`/ranges/${at}/low`} label="From" hint=" " />
              <NumberField pointer={`/ranges/${at}/high`} label="To" hint=" " />
              <CheckField pointer={`/ranges/${at}/log`} label="logarithmic" />
            </div>
            <Findings pointer={`/ranges/${at}`} />
            <Button kind="quiet" aria-label={`remove range ${at + 1}`} onClick={() => remove(at)}>
              ×
            </Button>
          </li>
        ))}
      </ul>
      <Findings pointer="/ranges" />
      <label className="row quieter">
        let vary
        <select className="input" value="" onChange={(event) => event.target.value && add(event.target.value)}>
          <option value="">one of …</option>
          {free.map((name) => (
            <option key={name} value={name}>
              {labelOf(name)}
            </option>
          ))}
        </select>
      </label>
      <div className="fields fields-told">
        <NumberField pointer="/trials/n_samples" label="Settings" hint="that Optuna draws; each has all seeds" />
        <ChoiceField pointer="/trials/pruner" label="Pruner" />
      </div>
    </Fold>
  );
}
