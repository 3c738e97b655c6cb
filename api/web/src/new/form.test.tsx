/** What the form draws of the catalogue: a field of the right kind for every option and every part of the backbone. */

import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";

import type { Catalog, Dataset } from "../api/types";
import catalog from "./catalog.json";
import { FormProvider } from "./context";
import { withDataset, withTokenizer, type Part } from "./data";
import { grouped } from "./groups";
import type { Json } from "./json";
import { set } from "./pointer";
import { RequestForm } from "./RequestForm";
import { defaultOptions, nullable, resolved, rulesOf, type Schema, withDefaults } from "./schema";

const rules = rulesOf(catalog as never);

function drawn(value: Json, findings: [pointer: string, detail: string][] = [], datasets: Dataset[] = []): string {
  const form = {
    catalog: catalog as unknown as Catalog,
    schema: rules.schema,
    value,
    findings: new Map(findings.map(([pointer, detail]) => [pointer, [detail]])),
    change: () => undefined,
  };
  return renderToStaticMarkup(
    <FormProvider value={form}>
      <RequestForm datasets={datasets} />
    </FormProvider>,
  );
}

/** One element of the form with what stands in it. */
function field(markup: string, pointer: string): string {
  const id = `id="field${pointer}"`;
  const found = new RegExp(`<(select|input)[^>]*${id}[^>]*>(?:.*?</select>)?`).exec(markup.replaceAll("\n", " "));
  expect(found, pointer).not.toBeNull();
  return found![1] === "select" ? found![0] : found![0].slice(0, found![0].indexOf(">") + 1);
}

function isOfItsKind(markup: string, pointer: string, root: Schema, schema: Schema) {
  const here = resolved(root, schema);
  const found = field(markup, pointer);
  if (here.enum) {
    const offered = [...(nullable(schema) ? [""] : []), ...here.enum.map(String)];
    for (const value of offered) expect(found).toContain(`<option value="${value}"`);
    expect(found.match(/<option/g)).toHaveLength(offered.length);
  } else if (here.type === "boolean") expect(found).toContain('type="checkbox"');
  else if (here.type === "integer" && nullable(schema)) expect(found).toMatch(/placeholder="(auto|all)"/);
  else expect(found).toMatch(/^<input/);
}

describe("the form", () => {
  const candidates = rules.blocks.map((block) => ({
    label: block.name,
    block: block.name,
    options: defaultOptions(block),
  }));
  const markup = drawn(withDefaults(rules, { space: { candidates } }));

  it.each(rules.blocks.map((block, at) => [block.name, block, at] as const))(
    "has a field for each option of %s",
    (_, block, at) => {
      for (const [name, schema] of Object.entries(block.options.properties ?? {})) {
        isOfItsKind(markup, `/space/candidates/${at}/options/${name}`, block.options, schema);
      }
    },
  );

  it("has a field for each part of the space and of the backbone", () => {
    const space = resolved(rules.schema, rules.schema.properties!["space"]!);
    const backbone = resolved(rules.schema, space.properties!["backbone"]!);
    for (const [name, schema] of Object.entries(space.properties!)) {
      if (!["backbone", "candidates", "layout"].includes(name)) isOfItsKind(markup, `/space/${name}`, rules.schema, schema);
    }
    for (const [name, schema] of Object.entries(backbone.properties!)) {
      isOfItsKind(markup, `/space/backbone/${name}`, rules.schema, schema);
    }
  });

  it("has a field for each part of the method, in a group of its own kind", () => {
    const method = resolved(rules.schema, rules.schema.properties!["method"]!);
    for (const [name, schema] of Object.entries(method.properties!)) {
      isOfItsKind(markup, `/method/${name}`, rules.schema, schema);
    }
    expect(grouped(["lr", "new_one"]).at(-1)).toEqual({ title: "Others", names: ["new_one"] });
  });

  it("bounds four kinds of cost, each as a number or against the parent", () => {
    const budget = { latency: { ms: 4 }, parameters: { at_most: 9 }, flops: { ratio_to_parent: 0.5 } };
    const bound = drawn(withDefaults(rules, { budget }));
    expect(field(bound, "/budget/latency/ms")).toContain('value="4"');
    expect(field(bound, "/budget/parameters/at_most")).toContain('value="9"');
    expect(field(bound, "/budget/flops/ratio_to_parent")).toContain('value="0.5"');
    expect(bound).not.toContain("field/budget/cache_bytes/");
  });

  it("has fields for each serve mode, and for the lengths that are scored", () => {
    const serve: Json = [{ mode: "prefill" }, { mode: "decode", batch: 1 }];
    const task = drawn(withDefaults(rules, { task: { serve, serve_lengths: [64, 256] } }));
    expect(field(task, "/task/serve/1/mode")).toContain('<option value="decode" selected="">');
    expect(field(task, "/task/serve/1/batch")).toContain('value="1"');
    expect(field(task, "/task/serve_lengths")).toContain('value="64, 256"');
    expect(field(markup, "/task/serve_lengths")).toContain('placeholder="auto"');
  });

  it("shows a starting layout slot by slot", () => {
    const layout: Json = ["attention", { present: "ffn", fixed: true }, { forbidden: ["attention"] }];
    const space = { n_slots: 3, candidates: ["attention", "ffn"], layout };
    const started = drawn(withDefaults(rules, { space }));
    expect(started).toContain('aria-label="slot 1: attention stands here"');
    expect(started).toContain('aria-label="slot 2: ffn, fixed"');
    expect(started).toContain('aria-label="slot 3: free, without attention"');
    expect(started).toContain("1 present, 1 fixed, 1 restricted");
  });

  it("has a line for each range, with its ends", () => {
    const ranges = [{ pointer: "/method/lr", low: 1e-4, high: 1e-2, log: true }];
    const varied = drawn(withDefaults(rules, { ranges, trials: { n_samples: 4 } }));
    expect(field(varied, "/ranges/0/pointer")).toContain('<option value="/method/lr" selected="">Learning rate');
    expect(field(varied, "/ranges/0/high")).toContain('value="0.01"');
    expect(field(varied, "/ranges/0/log")).toContain("checked");
  });

  it("shows what a preset gives", () => {
    const xl = drawn(catalog.presets["transformer-xl-base"] as unknown as Json);
    expect(field(xl, "/space/backbone/cutoffs")).toContain('value="19997, 39997, 199997"');
    expect(field(xl, "/space/same_length")).toContain("checked");
    expect(field(xl, "/space/clamp_len")).toContain('value="400"');
    expect(field(xl, "/task/serve/0/memory_length")).toContain('value="640"');
    expect(field(xl, "/space/positions")).toContain('<option value="transformer_xl" selected="">');
    expect(xl).toContain("Transformer-XL, LayerNorm, post-norm, memory of 192");
  });

  it("is folded unless something is wrong, which stands at its field", () => {
    expect(markup).not.toContain("open=");
    const pointer = "/space/candidates/1/options/ratio";
    const value = set(withDefaults(rules, { space: { candidates } }), pointer, 65);
    const wrong = drawn(value, [[pointer, "must be at most 64, not 65"]]);
    expect(wrong.match(/<details[^>]*open=/g)).toHaveLength(1);
    expect(wrong).toContain(`<p class="field-wrong" id="field${pointer}-note">must be at most 64, not 65</p>`);
    expect(field(wrong, pointer)).toContain('aria-invalid="true"');
  });
});

describe("the data of the form", () => {
  const quickstart = catalog.presets.quickstart as unknown as Json;
  const after = (parts: Part[]) =>
    withDefaults(
      rules,
      parts.reduce((now, [pointer, part]) => set(now, pointer, part), quickstart),
    );
  const tokenizer = { name: "pieces", kind: "tokenizer", built_in: false, n_bytes: 9, card: null } as Dataset;
  const text = { name: "python-docs", kind: "text", built_in: true, n_bytes: null, card: null } as Dataset;
  const notes = { name: "notes", kind: "text", built_in: false, n_bytes: 2_000_000, card: null } as Dataset;

  it.each(rules.tasks.map((each) => [each.name, each] as const))("have a field for each option of %s", (name, task) => {
    const value = after(withDataset(catalog as unknown as Catalog, [], quickstart, name));
    const markup = drawn(value);
    for (const [option, schema] of Object.entries(task.options.properties ?? {})) {
      isOfItsKind(markup, `/task/dataset_options/${option}`, task.options, schema);
    }
    expect(markup).not.toContain('id="field/task/tokenizer/type"');
  });

  it("stand in groups, tokenizers not among them", () => {
    const markup = field(drawn(quickstart, [], [text, notes, tokenizer]), "/task/dataset");
    const groups = [...markup.matchAll(/<optgroup label="([^"]*)">(.*?)<\/optgroup>/g)].map(
      ([, group, options]) => [group, options!.match(/value="([^"]*)"/)?.[1]] as const,
    );
    expect(groups).toEqual([
      ["yours", "notes"],
      ["built in", "python-docs"],
      ["synthetic tasks", rules.tasks[0]?.name],
    ]);
    expect(markup).toContain("notes (text, 2.0 MB)");
    expect(markup).not.toContain("pieces");
  });

  it.each([
    ["bytes", []],
    ["characters", []],
    ["words", ["vocab_size", "min_count"]],
    ["bpe", ["vocab_size"]],
    ["file", ["name"]],
  ])("with %s ask for %j", (type, parts) => {
    const markup = drawn(after(withTokenizer(type, ["pieces"])), [], [text, tokenizer]);
    const asked = ["vocab_size", "min_count", "name"].filter((part) => markup.includes(`field/task/tokenizer/${part}"`));
    expect(asked).toEqual(parts);
    for (const filled of ["sizes", "dataset_fingerprint", "tokenizer/fingerprint"]) {
      expect(markup).not.toContain(`field/task/${filled}`); // the service's to fill in
    }
  });

  it("say where a tokenizer comes from while there is none", () => {
    expect(drawn(after(withTokenizer("file", [])))).toContain("Upload a tokenizer.json");
  });
});
