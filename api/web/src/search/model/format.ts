/** What `ui/format` lacks: milliseconds, tiny differences, slots in words. */

import { count, fixed } from "../../ui/format";

/** Three significant digits: 12.4 ms, 0.880 ms, 103 ms. */
export function milliseconds(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  return `${fixed(value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3)} ms`;
}

/** Never 100 % before the end. */
export function percent(share: number): string {
  return `${Math.floor(share * 100 + 1e-9)} %`;
}

/** "1 seed", "2 seeds". */
export function counted(number: number, singular: string, plural = `${singular}s`): string {
  return `${count(number)} ${number === 1 ? singular : plural}`;
}

/** 1.2 × 10⁻⁶, as people write it; 0 stays 0. */
export function scientific(value: number): string {
  if (value === 0) return "0";
  const [mantissa = "0", power = "0"] = value.toExponential(1).split("e");
  const raised = [...String(Number(power))].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)] ?? "").join("");
  return `${mantissa.replace("-", "−")} × 10${raised}`;
}

/** Slots counted from 1, runs drawn together, as the rule line says them: "slots 1, 3–5". */
export function slotList(slots: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const slot of slots) {
    const last = runs.at(-1);
    if (last && slot === last[1] + 1) last[1] = slot;
    else runs.push([slot, slot]);
  }
  const parts = runs.map(([from, to]) => (from === to ? `${from + 1}` : `${from + 1}–${to + 1}`));
  return `${slots.length === 1 ? "slot" : "slots"} ${parts.join(", ")}`;
}

/** Seconds between two moments of the service; until now where the second is missing. */
export function secondsBetween(from: string | null, to: string | null, now: number): number | null {
  return from === null ? null : Math.max(0, ((to === null ? now : Date.parse(to)) - Date.parse(from)) / 1000);
}

/** Decimals of a difference and its interval: three, or as many more, up to six, as show two digits that are not 0. */
export function decimals(...values: number[]): number {
  const largest = Math.max(...values.map(Math.abs));
  return largest === 0 ? 3 : Math.max(3, Math.min(6, 1 - Math.floor(Math.log10(largest))));
}
