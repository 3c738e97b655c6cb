/** The picture of the loss by place. */

import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";

import { doubling, path, Places } from "./Places";

const falling = Array.from({ length: 12 }, (_, place) => 5 - place / 4);

describe("the loss by place", () => {
  it("is drawn of both models, with its ends in words", () => {
    const markup = renderToStaticMarkup(<Places positions={{ derived: falling, parent: falling }} />);
    expect(markup.match(/<path/g)).toHaveLength(2);
    expect(markup).toContain("from 5.00 at the front to 2.63 at the end");
    expect(markup.match(/>(1|2|4|8|12)<\/text>/g)).toHaveLength(5);
    expect(markup).toContain("dashed: parent");
  });

  it("tells losses near 0 with the digits they need", () => {
    const small = falling.map((value) => value / 10_000);
    expect(renderToStaticMarkup(<Places positions={{ derived: small, parent: null }} />)).toContain("from 0.0005 at");
  });

  it("is one curve where there is no parent", () => {
    const markup = renderToStaticMarkup(<Places positions={{ derived: falling, parent: null }} />);
    expect(markup.match(/<path/g)).toHaveLength(1);
    expect(markup).not.toContain("dashed");
  });

  it("is not drawn where hardly a place is scored: a sequence has one answer", () => {
    const places = (derived: (number | null)[]) => renderToStaticMarkup(<Places positions={{ derived, parent: null }} />);
    expect(places([0.4])).toBe("");
    expect(places([...Array<null>(20).fill(null), 1])).toBe("");
  });

  it("is a mean over twice as many places from point to point", () => {
    expect(doubling([8, 6, 4, 2, null, 1, 3])).toEqual([8, 6, 3, 2]);
    expect(doubling([1, null, null, null])).toEqual([1, null, null]);
  });

  it("leaves out what is not scored", () => {
    expect(path([1, null, 0, 0.5], 0, 1)).toBe("M0.0 0.0M280.0 110.0L420.0 55.0");
    expect(path([1, 1], 1, 1)).toBe("M0.0 55.0L420.0 55.0");
  });
});
