import { expect, test } from "vitest";

import { latenciesOf, serveWords, timesTrained } from "./found";

test("a length is told beside the trained one", () => {
  expect([32, 128, 512, 200, 100].map((length) => timesTrained(length, 128))).toEqual([
    "1/4 of trained",
    "as trained",
    "4 × trained",
    "1.56 × trained",
    "0.78 × trained",
  ]);
  expect(timesTrained(9, null)).toBe("");
});

test("of an older result the first serve mode is the only one", () => {
  const latency = { ratio: 1 };
  const serve = { batch: 8, query_length: 1280 };
  const [only] = latenciesOf({ latency, search: { serve: [serve] } } as never);
  expect(only).toMatchObject({ ratio: 1, serve });
  expect(serveWords(only!.serve)).toBe("batch 8 × 1,280 tokens");
  expect(serveWords(null)).toBe("first serve mode");
  expect(latenciesOf({ latency: null, search: {} } as never)).toEqual([]);
});
