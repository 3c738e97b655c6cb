/** The fields of `method`, in groups that belong together; one that no group names stands last, so that none is lost. */

export interface Group {
  title: string;
  names: readonly string[];
}

/** Fields that stand open, above all groups. */
export const BASIC = ["n_steps"];

const GROUPS: readonly Group[] = [
  {
    title: "Phases",
    names: ["warmup_share", "settle_share", "stop_when_stable", "uniform_share", "candidate_dropout"],
  },
  {
    title: "Alpha",
    names: [
      "alpha_estimator",
      "alpha_share",
      "alpha_lr",
      "alpha_decay",
      "alpha_draws",
      "tau_start",
      "tau_end",
      "entropy_weight",
      "max_identity",
      "random_signs",
    ],
  },
  {
    title: "Weights",
    names: ["batch_size", "micro_batch", "lr", "lr_schedule", "lr_warmup_steps", "weight_decay", "grad_clip"],
  },
  { title: "Budget's pressure", names: ["pressure", "cost_weight"] },
  { title: "What each block buys", names: ["prune_steps", "prune_share", "prune_windows", "prune_nats"] },
  {
    title: "Reports and limits",
    names: ["report_every", "checkpoint_every", "eval_windows", "max_minutes", "precision"],
  },
];

/** The groups of the fields that there are. */
export function grouped(fields: readonly string[]): Group[] {
  const known = new Set([...BASIC, ...GROUPS.flatMap((each) => each.names)]);
  const groups = GROUPS.map(({ title, names }) => ({ title, names: names.filter((name) => fields.includes(name)) }));
  const others = fields.filter((name) => !known.has(name));
  return [...groups, { title: "Others", names: others }].filter((each) => each.names.length > 0);
}

const LABELS: Record<string, string> = {
  lr: "Learning rate",
  lr_schedule: "Its schedule",
  lr_warmup_steps: "Its rise",
  alpha_estimator: "Estimator",
  alpha_lr: "Rate of alpha",
  alpha_decay: "Decay of alpha",
  alpha_draws: "Draws",
  tau_start: "First temperature",
  tau_end: "Last temperature",
  batch_size: "Batch",
  max_minutes: "At most, minutes",
  max_identity: "Most identity",
  grad_clip: "Largest gradient",
};

/** "warmup_share" as "Warmup share", or the words that say it better. */
export function labelOf(name: string): string {
  const words = name.replace(/^n_/, "").replaceAll("_", " ");
  return LABELS[name] ?? words.charAt(0).toUpperCase() + words.slice(1);
}
