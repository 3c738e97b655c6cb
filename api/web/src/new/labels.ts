/** What tells the candidates of one block apart: their options, in words and in labels. */

import type { Json } from "./json";
import { resolved, type BlockOptions } from "./schema";

const LONGEST = 40;

/** The options that are not the block's defaults, each in a word or two: "kv heads 2", "swiglu", "no bias". */
export function differences(block: BlockOptions, options: { [name: string]: Json }): string[] {
  return Object.entries(block.options.properties ?? {}).flatMap(([name, schema]) => {
    const value = options[name];
    if (value === undefined || value === null || value === schema.default) return [];
    const said = name.replace(/^n_/, "").replaceAll("_", " ");
    if (typeof value === "number") return [`${said} ${value}`];
    if (typeof value === "boolean") return [value ? said : `no ${said}`];
    const known = typeof value === "string" && resolved(block.options, schema).enum?.includes(value);
    return known ? [value.replaceAll("_", " ")] : [];
  });
}

/** The block's name and what is different. */
export function labelOf(block: BlockOptions, options: { [name: string]: Json }): string {
  const words = [block.name, ...differences(block, options)].join("-").replaceAll(/[^a-z0-9_.-]+/g, "-");
  return words.slice(0, LONGEST);
}

/** The label after its options have changed: one that spoke of them follows, one that somebody has chosen stays. */
export function following(
  block: BlockOptions,
  label: string,
  before: { [name: string]: Json },
  after: { [name: string]: Json },
  taken: string[],
): string {
  const was = labelOf(block, before);
  const ours = label !== block.name && (label === was || label.replace(/-\d+$/, "") === was);
  return ours ? freeLabel(labelOf(block, after), taken) : label;
}

export function freeLabel(name: string, taken: string[]): string {
  for (let number = 1; ; number++) {
    const label = number === 1 ? name : `${name.slice(0, LONGEST - 4)}-${number}`;
    if (!taken.includes(label)) return label;
  }
}
