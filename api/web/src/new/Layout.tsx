/** The starting layout as a row of slots: a press takes a slot from free to present to fixed; labels can be forbidden. */

import { useState, type CSSProperties } from "react";

import { lookOf } from "../blocks";
import { Button } from "../ui/Button";
import { useForm } from "./context";
import { AnyField, Findings } from "./Field";
import { Fold } from "./Fold";
import {
  choiceWords,
  cycled,
  FREE,
  layoutOf,
  layoutWords,
  type SlotChoice,
  withFixed,
  withForbidden,
  withLabel,
  written,
} from "./slotChoices";
import { get } from "./pointer";

export function Layout() {
  const { catalog, value, change } = useForm();
  const [chosen, setChosen] = useState<string | null>(null);
  const [slot, setSlot] = useState<number | null>(null);
  const candidates = get(value, "/space/candidates");
  const looks = (Array.isArray(candidates) ? candidates : []).map((each) => ({
    label: String(get(each, "/label") ?? ""),
    ...lookOf(catalog, String(get(each, "/block") ?? "")),
  }));
  const labels = looks.map((each) => each.label);
  const brush = chosen !== null && labels.includes(chosen) ? chosen : (labels[0] ?? "");
  const layout = layoutOf(value);
  const write = (changed: readonly SlotChoice[]) => change(["/space/layout", written(changed)]);
  const put = (at: number, choice: SlotChoice) => write(layout.map((each, other) => (other === at ? choice : each)));
  const pair = ["attention", "ffn"].map((family) => looks.find((each) => each.family === family)?.label);
  const open = slot !== null ? layout[slot] : undefined;

  return (
    <Fold
      summary={
        <>
          Starting layout <span className="quieter">{layoutWords(layout)}</span>
        </>
      }
      parts={["/space/layout", "/space/layout_prior"]}
    >
      <p className="field-hint">
        Search around a model there is. Choose a block, press a slot: first the block stands there and leads when the
        search begins, then it is fixed, then the slot is free again.
      </p>
      <div className="layout-brush" role="group" aria-label="block to put into a slot">
        {looks.map(({ label, letter, colour, ink }) => (
          <button key={label} type="button" aria-pressed={label === brush} onClick={() => setChosen(label)}>
            <span className="block-chip" style={{ background: colour, color: ink }} aria-hidden="true">
              {letter}
            </span>
            {label}
          </button>
        ))}
        {pair.every((label) => label !== undefined) && (
          <Button
            kind="quiet"
            onClick={() => write(layout.map((each, at) => withLabel(each, pair[at % 2] ?? null)))}
            title="attention and FFN in turn, as the parent has them"
          >
            interleaved
          </Button>
        )}
        <Button kind="quiet" onClick={() => write(layout.map(() => FREE))}>
          free all
        </Button>
      </div>
      <ol className="layout-slots" aria-label="starting layout">
        {layout.map((choice, at) => {
          const look = looks.find((each) => each.label === choice.present);
          return (
            <li key={at}>
              <button
                type="button"
                className="layout-slot"
                data-state={choice.present === null ? "free" : choice.fixed ? "fixed" : "present"}
                data-restricted={choice.forbidden.length > 0}
                data-chosen={at === slot}
                style={look && ({ "--colour": look.colour, "--on": look.ink } as CSSProperties)}
                aria-label={`slot ${at + 1}: ${choiceWords(choice)}`}
                title={`slot ${at + 1}: ${choiceWords(choice)}`}
                onClick={() => {
                  setSlot(at);
                  put(at, cycled(choice, brush));
                }}
              >
                {choice.present === null ? "" : (look?.letter ?? "?")}
              </button>
              <small aria-hidden="true">{at + 1}</small>
            </li>
          );
        })}
      </ol>
      {slot !== null && open && (
        <SlotEditor slot={slot} choice={open} labels={labels} put={(choice) => put(slot, choice)} />
      )}
      <Findings pointer="/space/layout" />
      <div className="fields fields-told">
        <AnyField pointer="/space/layout_prior" label="Lead of the present" />
      </div>
    </Fold>
  );
}

function SlotEditor({
  slot,
  choice,
  labels,
  put,
}: {
  slot: number;
  choice: SlotChoice;
  labels: readonly string[];
  put: (choice: SlotChoice) => void;
}) {
  const { present, fixed, forbidden } = choice;
  return (
    <fieldset className="layout-editor">
      <legend>Slot {slot + 1}</legend>
      <label className="row">
        stands there{" "}
        <select
          className="input"
          value={present ?? ""}
          onChange={(event) => put(withLabel(choice, event.target.value || null))}
        >
          <option value="">nothing named</option>
          {labels.map((label) => (
            <option key={label}>{label}</option>
          ))}
        </select>
      </label>
      <label className="check">
        <input
          type="checkbox"
          checked={fixed}
          disabled={present === null}
          onChange={(event) => put(withFixed(choice, event.target.checked))}
        />
        fixed
      </label>
      <span className="row" role="group" aria-label={`forbidden in slot ${slot + 1}`}>
        forbidden
        {labels.map((label) => (
          <label key={label} className="check">
            <input
              type="checkbox"
              checked={forbidden.includes(label)}
              disabled={fixed && label === present}
              onChange={(event) => put(withForbidden(choice, label, event.target.checked))}
            />
            {label}
          </label>
        ))}
      </span>
    </fieldset>
  );
}
