/** Colours for canvases: the page's tokens as they are now, and a call when the theme changes. */

import { useSyncExternalStore } from "react";

const scheme = typeof window === "undefined" ? null : window.matchMedia("(prefers-color-scheme: dark)");
let turn = 0;

function subscribe(listener: () => void): () => void {
  const changed = () => {
    turn++;
    resolved.clear();
    listener();
  };
  window.addEventListener("blockwright-theme", changed);
  scheme?.addEventListener("change", changed);
  return () => {
    window.removeEventListener("blockwright-theme", changed);
    scheme?.removeEventListener("change", changed);
  };
}

/** Changes with the theme: what draws on a canvas depends on it. */
export const useTheme = () => useSyncExternalStore(subscribe, () => turn);

const resolved = new Map<string, string>();
let probe: HTMLElement | null = null;

/** A token such as "--ink-2" as a colour that a canvas takes. */
export function token(name: string): string {
  const known = resolved.get(name);
  if (known !== undefined) return known;
  if (!probe) {
    probe = document.createElement("span");
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  resolved.set(name, found);
  return found;
}

/** Red, green, blue of "#rrggbb" or "rgb(r, g, b)". */
export function channels(colour: string): [number, number, number] {
  if (colour.startsWith("#")) {
    return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) as [number, number, number];
  }
  const numbers = (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  return [numbers[0] ?? 0, numbers[1] ?? 0, numbers[2] ?? 0];
}

/** From `ground` (share 0) to `colour` (share 1). */
export function blend(ground: string, colour: string, share: number): string {
  const [from, to] = [channels(ground), channels(colour)];
  return `#${from
    .map((value, at) =>
      Math.round(value + ((to[at] ?? 0) - value) * share)
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;
}

/** The lines of a seed: a colour that no family has, and a dash once the colours come round again. */
export const seedColour = (index: number) => `--seed-${index % 5}`;
export const seedDash = (index: number): number[] | undefined => [undefined, [6, 4], [2, 3]][Math.floor(index / 5) % 3];
