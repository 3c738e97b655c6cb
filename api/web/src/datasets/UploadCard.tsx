/** Upload a text: drop or choose a file, name it, watch it go, stop it. */

import { type FormEvent, useEffect, useRef, useState } from "react";

import { Problem as Failure } from "../api/client";
import type { Dataset } from "../api/types";
import { ButtonLink, Button } from "../ui/Button";
import { bytes, duration } from "../ui/format";
import { Problem } from "../ui/Problem";
import { Progress } from "../ui/Progress";
import { suggested, wrongName } from "./name";
import { Aborted, upload, type Sent } from "./upload";

type Stage =
  | { is: "empty" }
  | { is: "chosen"; file: File; problem?: Failure; note?: string }
  | { is: "sending"; file: File; sent: Sent; abort: () => void }
  | { is: "added"; dataset: Dataset };

export function UploadCard({
  texts,
  limits,
  onAdded,
}: {
  texts: Dataset[];
  limits: { least: number; most: number } | undefined;
  onAdded: (name: string) => void;
}) {
  const [stage, setStage] = useState<Stage>({ is: "empty" });
  const [name, setName] = useState("");
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const leave = useRef<() => void>(() => undefined);
  useEffect(() => () => leave.current(), []); // an upload ends with its page

  const take = (files: FileList | null | undefined) => {
    const file = files?.[0];
    if (!files || !file || stage.is === "sending") return;
    setName(
      suggested(
        file.name,
        texts.map((each) => each.name),
      ),
    );
    const note = files.length > 1 ? `the first of ${files.length} files; a text is one file` : undefined;
    setStage({ is: "chosen", file, note });
  };
  // The whole window takes a file: beside the card, a browser would leave the page for it.
  const newest = useRef(take);
  newest.current = take;
  useEffect(() => {
    const drag = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(event.type === "dragover");
      if (event.type === "drop") newest.current(event.dataTransfer.files);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    window.addEventListener("dragover", drag);
    window.addEventListener("drop", drag);
    window.addEventListener("dragleave", leave);
    return () => {
      window.removeEventListener("dragover", drag);
      window.removeEventListener("drop", drag);
      window.removeEventListener("dragleave", leave);
    };
  }, []);
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (stage.is !== "chosen" || wrong !== null) return;
    const { file } = stage;
    const aborter = new AbortController();
    const abort = () => aborter.abort();
    leave.current = abort;
    setStage({ is: "sending", file, sent: { bytes: 0, total: file.size, bytesPerS: null }, abort });
    try {
      const onSent = (sent: Sent) =>
        setStage((now) => (now.is === "sending" ? { is: "sending", file, sent, abort } : now));
      const dataset = await upload(name, file, onSent, aborter.signal);
      setStage({ is: "added", dataset });
      onAdded(dataset.name);
    } catch (error) {
      if (error instanceof Aborted) setStage({ is: "chosen", file, note: "stopped; nothing of it was kept" });
      else if (error instanceof Failure) setStage({ is: "chosen", file, problem: error });
      else throw error;
    } finally {
      leave.current = () => undefined;
    }
  };

  const file = stage.is === "chosen" || stage.is === "sending" ? stage.file : null;
  const builtIn = texts.filter((each) => each.built_in).map((each) => each.name);
  const wrong = wrongName(name, builtIn) ?? (file && wrongSize(file, limits));
  return (
    <section className={over ? "card upload upload-over" : "card upload"} aria-label="upload a text">
      <input
        ref={input}
        type="file"
        id="file"
        className="visually-hidden"
        tabIndex={-1}
        aria-hidden="true"
        onChange={(event) => {
          take(event.target.files);
          event.target.value = ""; // so that the same file, changed, can be chosen again
        }}
      />
      {file === null && (
        <div className="upload-empty">
          <p>
            <Button kind="primary" onClick={() => input.current?.click()}>
              Choose a text file
            </Button>{" "}
            <span className="quiet">or drop it here</span>
          </p>
          <p className="quieter">
            Plain UTF-8 text{limits && `, ${bytes(limits.least)} to ${bytes(limits.most)}`}; a few megabytes make a good
            search.
          </p>
          {stage.is === "added" && (
            <div className="upload-added" role="status">
              <span>
                <strong>{stage.dataset.name}</strong> is here: {bytes(stage.dataset.n_bytes)}.
              </span>
              <ButtonLink kind="primary" href={`/new?dataset=${encodeURIComponent(stage.dataset.name)}`}>
                Use it in a new search
              </ButtonLink>
            </div>
          )}
        </div>
      )}
      {file !== null && (
        <form onSubmit={(event) => void send(event)} className="upload-form">
          <div className="spread">
            <span className="upload-file">
              <strong>{file.name}</strong> <span className="quiet">{bytes(file.size)}</span>
            </span>
            {stage.is === "chosen" && (
              <Button kind="quiet" onClick={() => input.current?.click()}>
                choose another
              </Button>
            )}
          </div>
          {stage.is === "chosen" && (
            <>
              <div className="upload-name">
                <label htmlFor="text-name">Name</label>
                <input
                  id="text-name"
                  className="input"
                  value={name}
                  autoFocus
                  autoComplete="off"
                  spellCheck={false}
                  aria-invalid={wrong !== null}
                  aria-describedby="text-name-note"
                  onChange={(event) => setName(event.target.value)}
                />
                <Button kind="primary" type="submit" disabled={wrong !== null}>
                  Upload
                </Button>
                <Button kind="quiet" onClick={() => setStage({ is: "empty" })}>
                  Cancel
                </Button>
              </div>
              <p id="text-name-note" className={wrong ? "upload-wrong" : "quieter"}>
                {wrong ?? stage.note ?? "what searches will call it"}
              </p>
              {stage.problem && <Problem problem={stage.problem} title="Not taken" />}
            </>
          )}
          {stage.is === "sending" && (
            <>
              <Progress share={stage.sent.bytes / Math.max(1, stage.sent.total)} label={`upload of ${name}`} />
              <div className="spread">
                <span className="quiet" role="status">
                  {sentWords(stage.sent)}
                </span>
                <Button kind="danger" onClick={stage.abort}>
                  Stop
                </Button>
              </div>
            </>
          )}
        </form>
      )}
    </section>
  );
}

function wrongSize(file: File, limits: { least: number; most: number } | undefined): string | null {
  if (!limits) return null;
  if (file.size > limits.most) return `${bytes(file.size)} are too many; at most ${bytes(limits.most)} are taken`;
  if (file.size < limits.least) return `${file.size} bytes are too few for any search; at least ${limits.least}`;
  return null;
}

function sentWords({ bytes: sent, total, bytesPerS }: Sent): string {
  if (sent >= total) return "sent; the service checks and stores it";
  const speed = bytesPerS === null ? "" : `, ${bytes(Math.round(bytesPerS))} a second`;
  const left = bytesPerS !== null && bytesPerS > 0 ? `, ${duration(Math.ceil((total - sent) / bytesPerS))} left` : "";
  return `${bytes(sent)} of ${bytes(total)}${speed}${left}`;
}
