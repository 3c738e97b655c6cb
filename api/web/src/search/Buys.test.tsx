/** The row of what each block buys, as it is drawn. */

import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";

import { Buys } from "./Buys";
import { type Bought, REFERS } from "./model/effects";

const look = () => ({ family: "attention", letter: "A", colour: "#4477AA", ink: "#ffffff" });
const against = { label: "identity", nats: 0.12, se: 0.01 };
const bought: Bought[] = [
  { label: "attention", against, ms: 2.5, tied: false, tried: [against] },
  { label: "ffn", against: { ...against, nats: 0.005 }, ms: 1, tied: true, tried: [] },
  { label: "identity", against: null, ms: null, tied: false, tried: [] },
];
const drawn = (column: number, found: Bought[] | null = bought) =>
  renderToStaticMarkup(<Buys seed={0} bought={found} look={look} column={column} slots={3} waiting="later" />);
const number = (markup: string, part: string) => markup.split(part).length - 1;

it("has a bar with its whisker for each comparison, milliseconds beside, and hatches a tie", () => {
  const markup = drawn(120);
  expect(number(markup, 'fill="#4477AA"')).toBe(2);
  expect(number(markup, "buys-whisker")).toBe(2);
  expect(number(markup, "buys-ms")).toBe(2);
  expect(number(markup, "buys-tied")).toBe(1);
  expect(markup).toContain("0.120 · 2.50 ms");
  expect(markup).toContain(REFERS);
  expect(markup).toContain("slot 2: ffn buys 0.005 ± 0.010 nats for 1.00 ms, against identity; undecided");
});

it("leaves figures to the pointer where columns are narrow, and is as high with nothing as with bars", () => {
  expect(drawn(10)).not.toContain("0.120 ·");
  const size = /<svg class="buys" width="\d+" height="\d+"/;
  expect(size.exec(drawn(120, null))?.[0]).toBe(size.exec(drawn(120))?.[0]);
  expect(drawn(120, null)).toContain("later");
});
