/** Families of blocks: their colours and letters, the same here, in the command line and in plots. */

import { api, useQuery } from "./api/client";
import type { Catalog, Search } from "./api/types";

export interface Look {
  family: string;
  letter: string;
  /** #RRGGBB, safe for colour-blind eyes. */
  colour: string;
  /** Black or white, whichever reads better on the colour. */
  ink: string;
}

const UNKNOWN: Look = { family: "unknown", letter: "?", colour: "#888888", ink: "#ffffff" };

/** Of the request's candidates: the block of each label, for a label may be any name. */
export function blockOfLabels(request: Search["request"]): Record<string, string> {
  const space = request["space"] as { candidates?: unknown[] } | undefined;
  const found: Record<string, string> = {};
  for (const candidate of space?.candidates ?? []) {
    if (typeof candidate === "string") found[candidate] = candidate;
    else if (candidate && typeof candidate === "object") {
      const { label, block } = candidate as { label?: string; block?: string };
      if (block) found[label ?? block] = block;
    }
  }
  return found;
}

/** Relative luminance (WCAG 2): 0 black to 1 white. */
export function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0);
}

export const inkOn = (colour: string) => (luminance(colour) > 0.18 ? "#111111" : "#ffffff");

/** How a block looks, by its name. */
export function lookOf(catalog: Catalog | undefined, block: string): Look {
  const found = catalog?.blocks.find((each) => each.name === block);
  return found
    ? {
        family: found.family,
        letter: found.letter === "." ? "·" : found.letter,
        colour: found.colour,
        ink: inkOn(found.colour),
      }
    : UNKNOWN;
}

/** How each label of a request looks. */
export function looks(catalog: Catalog | undefined, request: Search["request"]): (label: string) => Look {
  const blocks = blockOfLabels(request);
  return (label) => lookOf(catalog, blocks[label] ?? label);
}

/** The service's catalog. */
export const useCatalog = () => useQuery("catalog", (signal) => api.GET("/api/v1/catalog", { signal }));
