/** The one slot axis: how wide a column is, and which of them are numbered. */

export const GUTTER = 116; // of the rows' names, pixels
const NARROWEST = 10; // still holds a letter; 96 slots fit a window
const WIDEST = 140;

/** Width of a slot's column in whole pixels; where they do not all fit, the picture scrolls. */
export function columnWidth(available: number, slots: number): number {
  return Math.max(NARROWEST, Math.min(WIDEST, Math.floor(available / Math.max(1, slots))));
}

/** Number every 1st, 2nd, 5th, 10th, ... slot, so that the numbers stay apart. */
export function numberEvery(column: number, slots: number): number {
  const needed = 7 * String(slots).length + 8;
  for (let power = 1; power < 1e6; power *= 10) {
    for (const factor of [1, 2, 5]) if (factor * power * column >= needed) return factor * power;
  }
  return slots;
}

/** Whether slot (from 0) carries its number. The first always does, and each that `every` divides. */
export function isNumbered(slot: number, every: number): boolean {
  return every === 1 || slot === 0 || (slot + 1) % every === 0;
}

/** The slot under a horizontal position, or null beside the axis. */
export function slotAt(x: number, column: number, slots: number): number | null {
  const slot = Math.floor(x / column);
  return slot >= 0 && slot < slots ? slot : null;
}
