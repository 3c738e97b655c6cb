import { expect, test } from "vitest";

import { bodyOf, commandOf, UNBOUNDED } from "./derive";

test("empty fields bound nothing", () => {
  const { constraints, sample, k } = bodyOf(UNBOUNDED, 3);
  expect([sample, k]).toEqual([3, 2]);
  expect(constraints.budget).toEqual({ latency: null, parameters: null });
  expect(constraints.counts).toEqual([]);
  expect(commandOf(UNBOUNDED, "id")).toBe("blockwright derive id");
});

test("each field is a constraint, and an option of the command", () => {
  const bounds = { latency: "0.8", parameters: "1.5", attention: "0", apart: true };
  const { constraints } = bodyOf(bounds, 0);
  expect(constraints.budget).toEqual({ latency: { ratio_to_parent: 0.8 }, parameters: { ratio_to_parent: 1.5 } });
  expect(constraints.counts).toEqual([{ family: "attention", at_most: 0 }]);
  expect(constraints.mixers_apart).toBe(true);
  expect(commandOf(bounds, "id")).toBe(
    'blockwright derive id --at-most latency=0.8x --at-most parameters=1.5x --count "attention<=0" --mixers-apart',
  );
});
