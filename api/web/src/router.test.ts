import { expect, test } from "vitest";

import { placeOf } from "./router";

test.each([
  ["/", "/"],
  ["/searches/7?step=3", "/searches/7"],
  ["/datasets/", "/datasets"],
  ["//", "/"],
])("%s is at %s", (href, path) => expect(placeOf(href).path).toBe(path));

test("the query is read", () => expect(placeOf("/?state=failed&dataset=a%2Fb").query.get("dataset")).toBe("a/b"));
