/** A starting layout: what stands in each slot of the model there is, and what may stand there. */

import type { Json } from "./json";
import { get } from "./pointer";

export interface SlotChoice {
  /** Label that stands there now; null: none is named. */
  present: string | null;
  /** Whether it stays. */
  fixed: boolean;
  /** Labels that may not stand there. */
  forbidden: readonly string[];
}

export const FREE: SlotChoice = { present: null, fixed: false, forbidden: [] };

/** Of each slot; a request without a layout leaves all free. What is no layout is read as far as it is one. */
export function layoutOf(request: Json): SlotChoice[] {
  const found = get(request, "/space/layout");
  const given = Array.isArray(found) ? found : [];
  const slots = Number(get(request, "/space/n_slots"));
  const length = Number.isInteger(slots) && slots >= 1 && slots <= 512 ? slots : given.length;
  return Array.from({ length }, (_, slot) => choiceOf(given[slot]));
}

function choiceOf(value: Json | undefined): SlotChoice {
  if (typeof value === "string") return { ...FREE, present: value };
  const present = get(value, "/present");
  const forbidden = get(value, "/forbidden");
  return {
    present: typeof present === "string" ? present : null,
    fixed: get(value, "/fixed") === true,
    forbidden: Array.isArray(forbidden) ? forbidden.map(String) : [],
  };
}

/** As the request holds it: none where all slots are free. */
export function written(layout: readonly SlotChoice[]): Json {
  const free = layout.every(({ present, forbidden }) => present === null && forbidden.length === 0);
  return free ? [] : layout.map(({ present, fixed, forbidden }) => ({ present, fixed, forbidden: [...forbidden] }));
}

/** The next of free, present and fixed, with a label to begin with. */
export function cycled(choice: SlotChoice, label: string): SlotChoice {
  if (choice.present === null) return withLabel(choice, label);
  return choice.fixed ? { ...choice, present: null, fixed: false } : withFixed(choice, true);
}

export function withLabel(choice: SlotChoice, present: string | null): SlotChoice {
  const forbidden = choice.forbidden.filter((each) => each !== present);
  return { present, fixed: choice.fixed && present !== null, forbidden };
}

/** What is fixed is not forbidden; what is only present may be, where it must go. */
export function withFixed(choice: SlotChoice, fixed: boolean): SlotChoice {
  return { ...(fixed ? withLabel(choice, choice.present) : choice), fixed };
}

export function withForbidden(choice: SlotChoice, label: string, forbidden: boolean): SlotChoice {
  const others = choice.forbidden.filter((each) => each !== label);
  return { ...choice, forbidden: forbidden ? [...others, label] : others };
}

/** "attention, fixed", "ffn stands here", "free, without attention". */
export function choiceWords({ present, fixed, forbidden }: SlotChoice): string {
  const said = present === null ? "free" : fixed ? `${present}, fixed` : `${present} stands here`;
  return forbidden.length ? `${said}, without ${forbidden.join(", ")}` : said;
}

/** "3 present, 1 fixed, 2 restricted", or that all are free. */
export function layoutWords(layout: readonly SlotChoice[]): string {
  const number = (of: (choice: SlotChoice) => boolean) => layout.filter(of).length;
  const said: [number, string][] = [
    [number(({ present, fixed }) => present !== null && !fixed), "present"],
    [number(({ fixed }) => fixed), "fixed"],
    [number(({ forbidden }) => forbidden.length > 0), "restricted"],
  ];
  const words = said.flatMap(([count, word]) => (count ? [`${count} ${word}`] : []));
  return words.join(", ") || "every slot is free";
}

/** The slots of a layout when their number changes: those beyond go, new ones are free. */
export function resized(request: Json, slots: Json): [pointer: string, part: Json][] {
  const layout = get(request, "/space/layout");
  if (!Array.isArray(layout) || layout.length === 0 || !Number.isInteger(slots)) return [];
  const wanted = Number(slots);
  if (wanted < 1 || wanted > 512) return [];
  const found = layoutOf(request);
  return [["/space/layout", written(Array.from({ length: wanted }, (_, slot) => found[slot] ?? FREE))]];
}
