/** Sends a file as the body of a request and tells how far it is; fetch cannot tell, so this is an XMLHttpRequest. */

import { Problem } from "../api/client";
import { connection, session } from "../api/connection";
import type { Dataset, ProblemBody } from "../api/types";

export interface Sent {
  bytes: number;
  total: number;
  /** Over the last seconds; null while nothing can be said. */
  bytesPerS: number | null;
}

export class Aborted extends Error {}

/** Bytes a second over a sliding window, so that a stalled line shows at once. */
export class SpeedMeter {
  private readonly points: { at: number; bytes: number }[] = [];

  constructor(private readonly windowMs = 3000) {}

  add(bytes: number, at: number): number | null {
    this.points.push({ at, bytes });
    while (this.points.length > 2 && at - this.points[0]!.at > this.windowMs) this.points.shift();
    const first = this.points[0]!;
    const ms = at - first.at;
    return ms < 200 ? null : ((bytes - first.bytes) / ms) * 1000;
  }
}

/**
 * Upload a dataset; all of it sent, the service reads it and answers when it has.
 *
 * @param query of the request: name, format and what else the service must be told (format.ts).
 * @throws Problem: the service refused, or cannot be reached.
 * @throws Aborted: by the signal.
 */
export function upload(
  query: URLSearchParams,
  file: File,
  onSent: (sent: Sent) => void,
  signal: AbortSignal,
): Promise<Dataset> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const meter = new SpeedMeter();
    const turn = session.turn();
    request.open("POST", `/api/v1/datasets?${query}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.responseType = "text";
    request.upload.onprogress = (event) =>
      onSent({ bytes: event.loaded, total: file.size, bytesPerS: meter.add(event.loaded, performance.now()) });
    request.onload = () => {
      connection.found();
      if (request.status === 200 || request.status === 201) return resolve(JSON.parse(request.responseText) as Dataset);
      if (request.status === 401) session.ask(turn);
      reject(new Problem(request.status, bodyOf(request.responseText)));
    };
    request.onerror = () => void broken(file).then(reject);
    request.onabort = () => reject(new Aborted());
    signal.addEventListener("abort", () => request.abort(), { once: true });
    if (signal.aborted) return reject(new Aborted());
    request.send(file);
  });
}

function bodyOf(text: string): Partial<ProblemBody> {
  try {
    return JSON.parse(text) as Partial<ProblemBody>;
  } catch {
    return {};
  }
}

/** Why nothing came back: a browser does not tell a file that cannot be read from a line that broke. */
async function broken(file: File): Promise<Problem> {
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch {
    return new Problem(0, {
      code: "unreadable",
      detail: `${file.name} cannot be read; is it a folder, or was it changed meanwhile?`,
    });
  }
  return new Problem(0, { detail: "the connection broke off before the service answered; send the file again" });
}
