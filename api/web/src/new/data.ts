/**
 * What a dataset asks of the rest of a request: where one is chosen, or what is predicted, the rest follows.
 */

import type { Catalog, Dataset, SyntheticTask } from "../api/types";
import type { Json } from "./json";
import { get } from "./pointer";

export type Part = [pointer: string, part: Json];
/** Of a dataset, what the form goes by. */
export type Known = Pick<Dataset, "name" | "kind"> & { card: Pick<NonNullable<Dataset["card"]>, "label_kind"> | null };

export const OBJECTIVES = [
  { value: "causal_lm", words: "the next token (decoder)" },
  { value: "masked_lm", words: "masked tokens (encoder)" },
  { value: "sequence_classification", words: "a label for each sequence" },
  { value: "token_classification", words: "a label for each token" },
];
const CLASSIFIES = ["sequence_classification", "token_classification"];

export function taskOf(catalog: Pick<Catalog, "tasks">, request: Json): SyntheticTask | undefined {
  const name = get(request, "/task/dataset");
  return catalog.tasks.find((each) => each.name === name);
}

/** The objective that the labels of a dataset are for; undefined without labels. */
function labelled(dataset: Known | undefined): string | undefined {
  const kind = dataset?.card?.label_kind;
  return kind === "sequence" ? CLASSIFIES[0] : kind === "token" ? CLASSIFIES[1] : undefined;
}

/** What can be predicted of the data, and what is asked for now, so that the form never hides it. */
export function objectivesFor(task: SyntheticTask | undefined, dataset: Known | undefined, now: Json | undefined) {
  const label = labelled(dataset);
  const fits = (value: string) =>
    task ? value === task.objective : !CLASSIFIES.includes(value) || value === label || dataset === undefined;
  return OBJECTIVES.filter(({ value }) => fits(value) || value === now);
}

/** Token types that make sense of the data, and the one asked for now. */
export function tokenizersFor(catalog: Pick<Catalog, "tokenizers">, dataset: Known | undefined, now: Json | undefined) {
  const fits = (type: string) => (type === "given") === (dataset?.kind === "tokens");
  return catalog.tokenizers.filter(({ type }) => fits(type) || type === now);
}

/** What must go with an objective, and with the synthetic task that has it. */
export function withObjective(
  request: Json,
  objective: string,
  task?: Pick<SyntheticTask, "causal" | "unrolled">,
): Part[] {
  const either = get(request, "/space/causal") === true;
  const sees = task ? (task.causal ?? either) : objective === "causal_lm";
  const parts: Part[] = [
    ["/task/objective", objective],
    ["/space/causal", sees],
    ["/space/backbone/n_classes", 0], // of labels the data tell; of tokens there are none
  ];
  if (!CLASSIFIES.includes(objective)) return parts;
  const before = get(request, "/space/backbone/pooling");
  const first = before === "first" && !sees; // that of a decoder has seen nothing
  const pooling = objective === "token_classification" ? "none" : first ? "first" : "mean";
  parts.push(["/space/backbone/pooling", task?.unrolled ? "unroll" : pooling]);
  parts.push(["/space/memory_length", 0]);
  const serve = get(request, "/task/serve");
  (Array.isArray(serve) ? serve : []).forEach((_, at) => parts.push([`/task/serve/${at}/memory_length`, 0]));
  return parts;
}

/** The request's parts that follow from the choice of a dataset. */
export function withDataset(
  catalog: Pick<Catalog, "tasks">,
  datasets: readonly Known[],
  request: Json,
  name: string,
): Part[] {
  const parts: Part[] = [
    ["/task/dataset", name],
    ["/task/dataset_fingerprint", null],
    ["/task/dataset_options", {}],
    ["/task/sizes", null],
  ];
  const task = catalog.tasks.find((each) => each.name === name);
  if (task) {
    parts.push(["/task/tokenizer", { type: "bytes" }]); // as left out: the task draws token ids itself
    return [...parts, ...withObjective(request, task.objective, task)];
  }
  const dataset = datasets.find((each) => each.name === name);
  const type = get(request, "/task/tokenizer/type");
  if (dataset?.kind === "tokens") parts.push(["/task/tokenizer", { type: "given" }]);
  else if (type === "given") parts.push(["/task/tokenizer", { type: "bytes" }]);
  const before = String(get(request, "/task/objective"));
  const label = labelled(dataset);
  if (label) return [...parts, ...withObjective(request, label)];
  if (!CLASSIFIES.includes(before)) return parts;
  return [...parts, ...withObjective(request, get(request, "/space/causal") === false ? "masked_lm" : "causal_lm")];
}

/** A tokenizer of a type with what that type needs; a file is the first that was uploaded. */
export function withTokenizer(type: string, uploaded: readonly string[]): Part[] {
  return [
    ["/task/tokenizer", type === "file" ? { type, name: uploaded[0] ?? null } : { type }],
    ["/task/sizes", null],
  ];
}

/** Planted tasks tell blocks apart only where nothing else knows of positions. */
export function knowsPositions(request: Json): boolean {
  return (
    get(request, "/space/positions") !== "none" || get(request, "/space/backbone/position_embedding") !== "none"
  );
}
