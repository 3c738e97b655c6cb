/** Upload a dataset: drop or choose a file, see what it is taken for, watch it go, stop it. */

import { type FormEvent, useEffect, useRef, useState } from "react";

import { Problem as Failure } from "../api/client";
import type { Dataset } from "../api/types";
import { Link } from "../router";
import { Button, ButtonLink } from "../ui/Button";
import { bytes, duration } from "../ui/format";
import { Problem } from "../ui/Problem";
import { Progress } from "../ui/Progress";
import { columnsOf, guess, queryOf, withColumns, wrongFormat, type FormatDraft } from "./format";
import { FormatFields } from "./FormatFields";
import { suggested, wrongName } from "./name";
import { Aborted, upload, type Sent } from "./upload";

type Stage =
  | { is: "empty" }
  | { is: "chosen"; file: File; problem?: Failure; note?: string }
  | { is: "sending"; file: File; sent: Sent; abort: () => void }
  | { is: "added"; dataset: Dataset };

const HEAD = 64 * 1024; // bytes read here: what the file is, and the names of its columns
const PLAIN: FormatDraft = guess("");

export function UploadCard({
  datasets,
  limits,
  onAdded,
}: {
  datasets: Dataset[];
  limits: { least: number; most: number } | undefined;
  onAdded: (name: string) => void;
}) {
  const [stage, setStage] = useState<Stage>({ is: "empty" });
  const [name, setName] = useState("");
  const [format, setFormat] = useState(PLAIN);
  const [columns, setColumns] = useState<string[]>([]);
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const leave = useRef<() => void>(() => undefined);
  const now = useRef(stage); // as it is behind an await
  now.current = stage;
  useEffect(() => () => leave.current(), []); // an upload ends with its page

  const take = async (files: FileList | null | undefined) => {
    const file = files?.[0];
    if (!files || !file || stage.is === "sending") return;
    const note = files.length > 1 ? `the first of ${files.length} files; a dataset is one file` : undefined;
    const beginning = await file
      .slice(0, HEAD)
      .arrayBuffer()
      .catch(() => new ArrayBuffer()); // a folder, or gone: sending it says so
    if (now.current.is === "sending") return;
    const guessed = guess(file.name, new Uint8Array(beginning));
    const found = columnsOf(guessed, new TextDecoder().decode(beginning));
    setName(
      suggested(
        file.name,
        datasets.map((each) => each.name),
      ),
    );
    setFormat(withColumns(guessed, found));
    setColumns(found);
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
      if (event.type === "drop") void newest.current(event.dataTransfer.files);
    };
    const left = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    window.addEventListener("dragover", drag);
    window.addEventListener("drop", drag);
    window.addEventListener("dragleave", left);
    return () => {
      window.removeEventListener("dragover", drag);
      window.removeEventListener("drop", drag);
      window.removeEventListener("dragleave", left);
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
      const dataset = await upload(queryOf(name, file.name, format), file, onSent, aborter.signal);
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
  const builtIn = datasets.filter((each) => each.built_in).map((each) => each.name);
  const badName = wrongName(name, builtIn);
  const wrong = badName ?? (file && (wrongSize(file, format, limits) ?? wrongFormat(format)));
  return (
    <section className={over ? "card upload upload-over" : "card upload"} aria-label="upload a dataset">
      <input
        ref={input}
        type="file"
        id="file"
        className="visually-hidden"
        tabIndex={-1}
        aria-hidden="true"
        onChange={(event) => {
          void take(event.target.files);
          event.target.value = ""; // so that the same file, changed, can be chosen again
        }}
      />
      {file === null && (
        <div className="upload-empty">
          <p>
            <Button kind="primary" onClick={() => input.current?.click()}>
              Choose a file
            </Button>{" "}
            <span className="quiet">or drop it here</span>
          </p>
          <p className="quieter">
            Plain text, JSON lines, CSV, TSV, Parquet, token ids or a tokenizer.json; gzip and zstd of these
            {limits && `; up to ${bytes(limits.most)}`}.
          </p>
          {stage.is === "added" && <Added dataset={stage.dataset} />}
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
              <FormatFields
                draft={format}
                columns={columns}
                change={(changes) => setFormat((before) => ({ ...before, ...changes }))}
              />
              <div className="upload-name">
                <label htmlFor="dataset-name">Name</label>
                <input
                  id="dataset-name"
                  className="input"
                  value={name}
                  autoFocus
                  autoComplete="off"
                  spellCheck={false}
                  aria-invalid={badName !== null}
                  aria-describedby="dataset-name-note"
                  onChange={(event) => setName(event.target.value)}
                />
                <Button kind="primary" type="submit" disabled={wrong !== null}>
                  Upload
                </Button>
                <Button kind="quiet" onClick={() => setStage({ is: "empty" })}>
                  Cancel
                </Button>
              </div>
              <p id="dataset-name-note" className={wrong ? "upload-wrong" : "quieter"}>
                {wrong ?? stage.note ?? "what searches will call it"}
              </p>
              {stage.problem && <Problem problem={stage.problem} title="Not taken" />}
            </>
          )}
          {stage.is === "sending" && (
            <>
              <Progress
                share={stage.sent.bytes / Math.max(1, stage.sent.total)}
                state={isSent(stage.sent) ? "reading" : "running"}
                label={`upload of ${name}`}
              />
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

function Added({ dataset: { name, kind, n_bytes } }: { dataset: Dataset }) {
  const use = kind === "tokenizer" ? "tokenizer" : "dataset";
  return (
    <div className="upload-added" role="status">
      <span>
        <Link href={`/datasets/${encodeURIComponent(name)}`}>
          <strong>{name}</strong>
        </Link>{" "}
        is here: {bytes(n_bytes)}.
      </span>
      <ButtonLink kind="primary" href={`/new?${use}=${encodeURIComponent(name)}`}>
        Use it in a new search
      </ButtonLink>
    </div>
  );
}

/** What the service will refuse by size alone; of a compressed file, or of records, it is not the content's size. */
function wrongSize(file: File, format: FormatDraft, limits: { least: number; most: number } | undefined) {
  if (file.size === 0) return "the file is empty";
  if (!limits) return null;
  if (file.size > limits.most) return `${bytes(file.size)} are too many; at most ${bytes(limits.most)} are taken`;
  const plain = format.format === "text" && format.compression === "none";
  if (plain && file.size < limits.least)
    return `${file.size} bytes are too few for any search; at least ${limits.least}`;
  return null;
}

const isSent = ({ bytes: sent, total }: Sent) => sent >= total;

function sentWords(sent: Sent): string {
  if (isSent(sent)) return "sent; the service is reading it";
  const { bytes: done, total, bytesPerS } = sent;
  const speed = bytesPerS === null ? "" : `, ${bytes(Math.round(bytesPerS))} a second`;
  const left = bytesPerS !== null && bytesPerS > 0 ? `, ${duration(Math.ceil((total - done) / bytesPerS))} left` : "";
  return `${bytes(done)} of ${bytes(total)}${speed}${left}`;
}
