import { describe, expect, it } from "vitest";

import catalog from "./catalog.json";
import { differences, following, freeLabel, labelOf } from "./labels";
import { defaultOptions, rulesOf } from "./schema";

const { blocks } = rulesOf(catalog as never);
const named = (name: string) => blocks.find((each) => each.name === name)!;
const [attention, ffn, sgu] = [named("attention"), named("ffn"), named("sgu")];
const plain = defaultOptions(ffn);

describe("what is different of a candidate", () => {
  it.each([
    [attention, {}, []],
    [attention, { n_kv_heads: 2, window: 64 }, ["kv heads 2", "window 64"]],
    [attention, { positions: "relative_bias_only", bias: true }, ["relative bias only", "bias"]],
    [ffn, { activation: "swiglu", bias: false }, ["swiglu", "no bias"]],
    [ffn, { ratio: "2x", activation: "tanh", width: 3 }, []], // what the checks refuse tells nothing
  ])("of %o with %j is %j", (block, options, words) => {
    expect(differences(block, { ...defaultOptions(block), ...options })).toEqual(words);
  });
});

describe("a label", () => {
  it("of another candidate of a block is free, and no longer than a label may be", () => {
    expect(freeLabel("ffn", ["attention"])).toBe("ffn");
    expect(freeLabel("ffn", ["ffn", "ffn-2"])).toBe("ffn-3");
    const long = labelOf(sgu, { gate: "multiplicative", spatial: "toeplitz", apply: "explicit", bias: "scalar" });
    expect(long).toHaveLength(40);
    expect(freeLabel(long, [long]).length).toBeLessThanOrEqual(40);
  });

  it("follows the options, so that two of one block can be told apart", () => {
    const relu = { ...plain, activation: "relu" };
    expect(following(ffn, "ffn-2", plain, relu, ["ffn"])).toBe("ffn-relu");
    expect(following(ffn, "ffn-relu", relu, { ...relu, ratio: 2 }, ["ffn"])).toBe("ffn-ratio-2-relu");
    expect(following(ffn, "ffn-relu", relu, plain, ["ffn"])).toBe("ffn-2");
    expect(following(ffn, "ffn-2", plain, relu, ["ffn", "ffn-relu"])).toBe("ffn-relu-2");
    expect(following(ffn, "ffn-relu-2", relu, { ...relu, ratio: 2 }, ["ffn"])).toBe("ffn-ratio-2-relu");
  });

  it("that is the block's own name, or somebody's choice, stays", () => {
    expect(following(ffn, "ffn", plain, { ...plain, ratio: 2 }, [])).toBe("ffn");
    expect(following(ffn, "wide", plain, { ...plain, ratio: 8 }, ["ffn"])).toBe("wide");
  });
});
