/** Where to begin: whole requests by name, or an earlier search. */

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
  return (
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
      {Object.entries(catalog.presets).map(([name, request]) => (
        <li key={name}>
          <button
            type="button"
            className="preset"
            aria-current={source.split("&").includes(`preset=${name}`)}
            onClick={() => choose(name)}
          >
            <strong>{name}</strong>
            <span className="quieter">{catalog.preset_descriptions[name]}</span>
            <Facts catalog={catalog} request={request as Json} />
          </button>
        </li>
      ))}
    </ul>
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
