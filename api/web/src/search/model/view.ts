/** What of a search is looked at: in the URL, so that a view can be sent to somebody. Slots count from 1 there. */

export const CURVES = ["cost", "dual", "entropy", "identity", "velocity", "tau", "speed"] as const;
export type CurveChoice = (typeof CURVES)[number];
export type LossChoice = "search" | "retrain";

export interface View {
  /** Pinned slot, from 0. */
  slot: number | null;
  /** Seed of the folded band; null: the one of the result, else the first. */
  seed: number | null;
  /** One seed's band, or all of them. */
  folded: boolean;
  /** Sample of hyper-parameters; null: the best, else the newest. */
  sample: number | null;
  /** null follows the newest. */
  step: number | null;
  curve: CurveChoice;
  /** null: what runs. */
  loss: LossChoice | null;
}

const whole = (text: string | null): number | null => (text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null);

export function viewOf(query: URLSearchParams, slots: number): View {
  const slot = whole(query.get("slot"));
  const curve = query.get("curve");
  const loss = query.get("loss");
  return {
    slot: slot !== null && slot >= 1 && slot <= slots ? slot - 1 : null,
    seed: whole(query.get("seed")),
    folded: query.get("folded") !== "0",
    sample: whole(query.get("sample")),
    step: whole(query.get("step")),
    curve: CURVES.find((each) => each === curve) ?? "cost",
    loss: loss === "search" || loss === "retrain" ? loss : null,
  };
}

/** The query of a view: defaults are left out, so that a plain look has a plain address. */
export function queryOf(view: View): Record<string, string | number | null> {
  return {
    slot: view.slot === null ? null : view.slot + 1,
    seed: view.seed,
    folded: view.folded ? null : 0,
    sample: view.sample,
    step: view.step,
    curve: view.curve === "cost" ? null : view.curve,
    loss: view.loss,
  };
}
