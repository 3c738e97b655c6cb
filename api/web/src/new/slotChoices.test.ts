import { describe, expect, it } from "vitest";

import catalog from "./catalog.json";
import type { Json } from "./json";
import { choiceWords, cycled, FREE, layoutOf, layoutWords, resized, withFixed, withForbidden, withLabel, written } from "./slotChoices";
import { rangeAround, varying } from "./varying";
import { rulesOf } from "./schema";

const space = (more: object): Json => ({ space: { n_slots: 3, ...more } }) as unknown as Json;

describe("a starting layout", () => {
  it("is read of labels and of objects, and is free where the request has none", () => {
    expect(layoutOf(space({ layout: [] }))).toEqual([FREE, FREE, FREE]);
    expect(layoutOf(space({ layout: ["a", { present: "b", fixed: true }] }))).toEqual([
      { present: "a", fixed: false, forbidden: [] },
      { present: "b", fixed: true, forbidden: [] },
      FREE,
    ]);
    expect(layoutOf({ space: { n_slots: "many", layout: [null] } })).toEqual([FREE]);
  });

  it("goes from free to present to fixed and back", () => {
    const present = cycled({ ...FREE, forbidden: ["a", "b"] }, "a");
    expect(present).toEqual({ present: "a", fixed: false, forbidden: ["b"] });
    const fixed = cycled(present, "c");
    expect(fixed).toEqual({ present: "a", fixed: true, forbidden: ["b"] });
    expect(cycled(fixed, "c")).toEqual({ present: null, fixed: false, forbidden: ["b"] });
  });

  it("may forbid what stands there, unless it is fixed", () => {
    const leaving = withForbidden({ ...FREE, present: "a" }, "a", true);
    expect(leaving).toEqual({ present: "a", fixed: false, forbidden: ["a"] });
    expect(cycled(leaving, "b")).toEqual({ present: "a", fixed: true, forbidden: [] });
    expect(withFixed(withFixed(leaving, true), false)).toEqual({ present: "a", fixed: false, forbidden: [] });
  });

  it("never forbids what is put there anew, nor fixes nothing", () => {
    expect(withLabel({ present: "a", fixed: true, forbidden: ["b"] }, "b").forbidden).toEqual([]);
    expect(withLabel({ present: "a", fixed: true, forbidden: [] }, null).fixed).toBe(false);
    expect(withForbidden(withForbidden(FREE, "a", true), "a", true).forbidden).toEqual(["a"]);
    expect(withForbidden({ ...FREE, forbidden: ["a"] }, "a", false).forbidden).toEqual([]);
  });

  it("that is free everywhere leaves the request plain", () => {
    expect(written([FREE, FREE])).toEqual([]);
    expect(written([FREE, cycled(FREE, "a")])).toHaveLength(2);
  });

  it("follows the number of slots", () => {
    const request = space({ layout: ["a", "a", "a"] });
    expect(resized(request, 2)[0]?.[1]).toHaveLength(2);
    expect(resized(request, 4)[0]?.[1]).toHaveLength(4);
    expect([resized(request, "4x"), resized(request, 0), resized(space({ layout: [] }), 2)]).toEqual([[], [], []]);
  });

  it("is told in words", () => {
    expect(choiceWords({ present: "a", fixed: true, forbidden: ["b", "c"] })).toBe("a, fixed, without b, c");
    expect(layoutWords([FREE])).toBe("every slot is free");
  });
});

describe("a range", () => {
  const { schema } = rulesOf(catalog as never);
  const quickstart = catalog.presets.quickstart as unknown as Json;

  it("may be of any number of the method, and of nothing else", () => {
    expect(varying(schema)).toContain("lr");
    for (const name of ["alpha_estimator", "random_signs"]) expect(varying(schema)).not.toContain(name);
  });

  it("begins around what the request has", () => {
    expect(rangeAround(schema, quickstart, "lr")).toEqual({ pointer: "/method/lr", low: 0.002, high: 0.032, log: true });
    expect(rangeAround(schema, quickstart, "batch_size")).toMatchObject({ low: 2, high: 32, log: false });
  });

  it.each(varying(schema))("of %s lies within what the field allows", (name) => {
    const { low, high, log } = rangeAround(schema, quickstart, name) as { low: number; high: number; log: boolean };
    const field = Object.values(schema.$defs ?? {}).find((each) => each.properties?.[name])!.properties![name]!;
    expect(low).toBeLessThan(high);
    if (log) expect(low).toBeGreaterThan(0);
    if (field.minimum !== undefined) expect(low).toBeGreaterThanOrEqual(field.minimum);
    if (field.exclusiveMinimum !== undefined) expect(low).toBeGreaterThan(field.exclusiveMinimum);
    if (field.maximum !== undefined) expect(high).toBeLessThanOrEqual(field.maximum);
    if (field.exclusiveMaximum !== undefined) expect(high).toBeLessThan(field.exclusiveMaximum);
  });
});
