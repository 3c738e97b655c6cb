/** How the model will be run: where latency is measured and bounded, and at which lengths it is scored. */

import { Button } from "../ui/Button";
import { Card } from "../ui/Card";
import { useForm } from "./context";
import { AnyField, ChoiceField, Findings, NumberField } from "./Field";
import type { Json } from "./json";
import { get } from "./pointer";

const MOST = 8;
const MODES = [
  { value: "prefill", words: "prefill" },
  { value: "decode", words: "decode" },
  { value: "training", words: "training" },
];
const WORDS: Record<string, string> = {
  prefill: "whole sequences at once",
  decode: "token by token, behind those that were read",
  training: "forward and backward",
};

export function ServeCard() {
  const { value, change } = useForm();
  const found = get(value, "/task/serve");
  const modes = Array.isArray(found) ? found : [];
  const memory = [get(value, "/space"), ...modes].some((part) => Number(get(part, "/memory_length")) > 0);
  const write = (changed: Json[]) => change(["/task/serve", changed]);
  const decodes = get(value, "/space/causal") === true && !String(get(value, "/task/objective")).endsWith("_classification");
  const offered = MODES.filter((each) => each.value !== "decode" || decodes);
  const missing = offered.find(({ value: mode }) => !modes.some((each) => get(each, "/mode") === mode)) ?? MODES[0];
  return (
    <Card title="Serving">
      <ol className="serve-modes" aria-label="serve modes">
        {modes.map((mode, at) => (
          <li key={at}>
            <div className="fields">
              <ChoiceField
                pointer={`/task/serve/${at}/mode`}
                label="Mode"
                choices={MODES}
                hint={`${WORDS[String(get(mode, "/mode"))] ?? ""}${at === 0 ? "; what the budget bounds" : ""}`}
              />
              <NumberField pointer={`/task/serve/${at}/batch`} label="Served batch" hint="sequences at once" />
              <NumberField pointer={`/task/serve/${at}/query_length`} label="Served length" hint="tokens of each" />
              {memory && (
                <NumberField
                  pointer={`/task/serve/${at}/memory_length`}
                  label="Served memory"
                  hint="earlier tokens of each"
                />
              )}
            </div>
            {modes.length > 1 && (
              <Button
                kind="quiet"
                aria-label={`remove serve mode ${at + 1}`}
                onClick={() => write(modes.filter((_, other) => other !== at))}
              >
                ×
              </Button>
            )}
          </li>
        ))}
      </ol>
      <Findings pointer="/task/serve" />
      <Button
        disabled={modes.length >= MOST}
        onClick={() => write([...modes, another(value, modes[0], missing?.value ?? "prefill")])}
      >
        Add a mode
      </Button>
      <div className="fields fields-told">
        <AnyField pointer="/task/serve_lengths" label="Scored lengths" />
      </div>
    </Card>
  );
}

/** As the first, in another mode. Decoding reads one token more than were given, and its cache is all that it keeps. */
function another(request: Json, first: Json | undefined, mode: string): Json {
  const serve = { ...(first as { [name: string]: Json }), mode };
  if (mode !== "decode") return serve;
  const trained = Number(get(request, "/task/train_length"));
  const length = Number(get(serve, "/query_length"));
  return { ...serve, memory_length: 0, query_length: Math.max(1, Math.min(length, trained - 1)) };
}
