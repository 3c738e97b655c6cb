/** Where to begin: whole requests by name, or an earlier search. */

import { useState } from "react";

import type { Catalog, Search } from "../api/types";
import { lookOf } from "../blocks";
import type { Json } from "./json";
import { grouped } from "./plan";
import { get } from "./pointer";

export function Presets({
  catalog,
  source,
  from,
  choose,
}: {
  catalog: Catalog;
  source: string;
  /** The search that the request is taken from. */
  from: Search | null;
  choose: (preset: string) => void;
}) {
  const presets = Object.entries(catalog.presets).map(([name, found]) => {
    const request = found as Json;
    const gpu = Number(get(request, "/resources/gpus")) > 0;
    return { name, request, gpu, current: source.split("&").includes(`preset=${name}`) };
  });
  const large = presets.filter(({ gpu }) => gpu);
  const cards = (some: typeof presets) =>
    some.map(({ name, request, current }) => (
      <li key={name}>
        <button type="button" className="preset" aria-current={current} onClick={() => choose(name)}>
          <strong>{name}</strong>
          <span className="quieter">{catalog.preset_descriptions[name]}</span>
          <Facts catalog={catalog} request={request} />
        </button>
      </li>
    ));
  const [open, setOpen] = useState(large.some(({ current }) => current));
  return (
    <div>
      <ul className="presets" aria-label="presets">
        {from && (
          <li>
            <div className="preset" aria-current="true">
              <strong>{from.name}</strong>
              <span className="quieter">the request of an earlier search</span>
              <Facts catalog={catalog} request={from.request as Json} />
            </div>
          </li>
        )}
        {cards(presets.filter(({ gpu }) => !gpu))}
      </ul>
      {large.length > 0 && (
        <details className="presets-large" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>
            {large.length} more for a GPU <span className="quieter">{large.map(({ name }) => name).join(", ")}</span>
          </summary>
          <ul className="presets" aria-label="presets for a GPU">
            {cards(large)}
          </ul>
        </details>
      )}
    </div>
  );
}

function Facts({ catalog, request }: { catalog: Catalog; request: Json }) {
  const number = (pointer: string) => grouped(Number(get(request, pointer)));
  const found = get(request, "/space/candidates");
  const blocks = (Array.isArray(found) ? found : []).map((each) => String(get(each, "/block") ?? each));
  return (
    <span className="preset-facts">
      <span className="preset-chips">
        {blocks.map((block, at) => {
          const { letter, colour, ink } = lookOf(catalog, block);
          return (
            <span key={at} className="block-chip" style={{ background: colour, color: ink }} title={block}>
              {letter}
            </span>
          );
        })}
      </span>
      <span className="quieter">
        {number("/space/n_slots")} slots · width {number("/space/d_model")} · {number("/trials/n_seeds")} ×{" "}
        {number("/method/n_steps")} updates
      </span>
    </span>
  );
}
