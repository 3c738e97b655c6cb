/** How the exported model is run: by text or token ids, as its objective and tokenizer have it. */

import type { Result } from "../../api/types";

export function modelCommands(result: Result, synthetic: boolean): { packages: string[]; run: string } {
  const { objective, tokenizer } = result.search as { objective?: string; tokenizer?: string | { type?: string } };
  const type = synthetic ? "given" : ((typeof tokenizer === "string" ? tokenizer : tokenizer?.type) ?? "bytes");
  const ids = type === "given";
  const packages = ["torch", "safetensors", ...(ids || type === "bytes" ? [] : ["tokenizers"])];
  return { packages, run: `python model.py ${options(objective ?? "causal_lm", type, ids)}` };
}

function options(objective: string, type: string, ids: boolean): string {
  if (ids) return objective === "masked_lm" ? '--ids "1 _ 0"' : '--ids "1 0 1"';
  if (objective === "masked_lm") return type === "bytes" ? '--prompt "some te_t"' : '--prompt "some [MASK]"';
  if (objective !== "causal_lm") return '--prompt "some text"';
  return `--prompt "import " ${type === "bytes" ? "--bytes 200" : "--tokens 50"}`;
}
