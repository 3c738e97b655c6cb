/** The texts that searches may name: those that every installation has, and those that were uploaded. */

import { api, useQuery } from "../api/client";
import { useCatalog } from "../blocks";
import { navigate, useLocation, withQuery } from "../router";
import { Problem } from "../ui/Problem";
import "./datasets.css";
import { TextRow } from "./TextRow";
import { UploadCard } from "./UploadCard";

export function DatasetsPage() {
  const shown = useLocation().query.get("show");
  const catalog = useCatalog();
  const { data, problem, reload } = useQuery("datasets", (signal) => api.GET("/api/v1/datasets", { signal }), {
    every: 15_000,
  });
  const texts = data?.items ?? [];
  const show = (name: string | null) => navigate(withQuery({ show: name }), { replace: true });
  const own = texts.filter((each) => !each.built_in);
  return (
    <div className="stack">
      <h1>Texts</h1>
      <p className="quiet">
        What searches learn from: UTF-8 text, cut into parts for weights, alpha, validation and test.
      </p>
      <UploadCard
        texts={texts}
        limits={catalog.data && { least: catalog.data.min_dataset_bytes, most: catalog.data.max_dataset_bytes }}
        onAdded={(name) => {
          reload();
          show(name);
        }}
      />
      {problem && <Problem problem={problem} title="The texts cannot be listed" />}
      {data && (
        <section className="card" aria-label="texts">
          {own.length === 0 && (
            <p className="quiet texts-none">No text of yours yet: drop a file above, or begin with a built-in one.</p>
          )}
          <ul className="texts">
            {[...own, ...texts.filter((each) => each.built_in)].map((text) => (
              <TextRow
                key={text.name}
                text={text}
                open={shown === text.name}
                toggle={() => show(shown === text.name ? null : text.name)}
                onRemoved={() => {
                  if (shown === text.name) show(null);
                  reload();
                }}
              />
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}
