/** The model to take away: its file, what vouches for it, and the commands that use it. */

import { memo } from "react";

import type { Artifact, Result as Found } from "../api/types";
import { Card } from "../ui/Card";
import { Command } from "../ui/Command";
import { bytes } from "../ui/format";
import { scientific } from "./model/format";
import { modelCommands } from "./model/use";

export const Model = memo(function Model({
  result,
  artifacts,
  synthetic,
}: {
  result: Found;
  artifacts: readonly Artifact[];
  /** Whether the data are a synthetic task's: the model reads token ids then. */
  synthetic: boolean;
}) {
  const { packages, run } = modelCommands(result, synthetic);
  const file = artifacts.find((each) => each.kind === "export");
  return (
    <Card title="Model" className="model-card">
      {file ? (
        <ul className="facts">
          <li>
            <a href={`/api/v1/artifacts/${file.id}`} download={file.name}>
              {file.name}
            </a>{" "}
            {bytes(file.n_bytes)}
          </li>
          <li>
            logits equal to the trained model's within <b>{scientific(result.export.logits_max_abs_difference)}</b>
          </li>
          <li>
            sha256 <code title={file.sha256}>{file.sha256.slice(0, 16)}…</code>
          </li>
          {artifacts
            .filter((each) => each !== file)
            .map((each) => (
              <li key={each.id}>
                <a href={`/api/v1/artifacts/${each.id}`} download={each.name}>
                  {each.name}
                </a>{" "}
                {bytes(each.n_bytes)}
              </li>
            ))}
        </ul>
      ) : (
        <p className="quiet">The export's file is listed once it is written.</p>
      )}
      <p className="quiet">It runs without Blockwright; {listed(packages)} are all it needs.</p>
      <div className="commands">
        <Command>unzip export.zip -d model && cd model</Command>
        <Command>{`pip install ${packages.join(" ")}`}</Command>
        <Command>{run}</Command>
      </div>
    </Card>
  );
});

const listed = (words: string[]) => `${words.slice(0, -1).join(", ")} and ${words.at(-1) ?? ""}`;
