/**
 * A service whose answers come when a test says so, to try every order in which they may arrive.
 *
 * Time stands still but for `pass`. A test file that uses it begins with `// @vitest-environment happy-dom` and imports
 * this before the page: the client keeps the `fetch` that it finds.
 */

import { act, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { vi } from "vitest";

export interface Question {
  method: string;
  /** Without host and query. */
  path: string;
  answer: (body: unknown, status?: number, etag?: string) => void;
  /** Nobody is there. */
  fail: () => void;
}

type Reply = (question: Question) => void;

/** The open questions and streams of one test. */
export class Service {
  /** Asked and not yet answered, the oldest first. */
  readonly open: Question[] = [];
  readonly asked: string[] = [];
  readonly streams: Stream[] = [];
  /** Answers what it does not leave open. */
  reply: Reply = () => undefined;

  /** The oldest open question whose path ends so. */
  question(end: string): Question {
    const found = this.open.find(({ path }) => path.endsWith(end));
    if (!found) throw new Error(`nobody has asked for ${end}; open: ${this.open.map(({ path }) => path).join(", ")}`);
    return found;
  }

  /** The stream that is followed. */
  get stream(): Stream {
    const found = this.streams.findLast(({ closed }) => !closed);
    if (!found) throw new Error("nothing is followed");
    return found;
  }

  readonly fetch = (input: Request | string, init: RequestInit = {}): Promise<Response> => {
    const request = typeof input === "string" ? { url: input, method: init.method ?? "GET", signal: init.signal } : input;
    const path = request.url.replace(/^https?:\/\/[^/]+/, "").replace(/\?.*/, "");
    return new Promise((resolve, reject) => {
      const done = (then: () => void) => {
        const at = this.open.indexOf(question);
        if (at < 0) return;
        this.open.splice(at, 1);
        then();
      };
      const question: Question = {
        method: request.method,
        path,
        answer: (body, status = 200, etag) => {
          const headers = { "content-type": "application/json", ...(etag === undefined ? {} : { etag }) };
          done(() => resolve(new Response(JSON.stringify(body), { status, headers })));
        },
        fail: () => done(() => reject(new TypeError("Failed to fetch"))),
      };
      this.asked.push(`${request.method} ${path}`);
      this.open.push(question);
      request.signal?.addEventListener("abort", () => done(() => reject(new DOMException("", "AbortError"))));
      this.reply(question);
    });
  };
}

export class Stream {
  closed = false;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  private readonly heard = new Map<string, (message: { data: string }) => void>();

  constructor(readonly url: string) {}

  addEventListener(type: string, hear: (message: { data: string }) => void): void {
    this.heard.set(type, hear);
  }

  tell(number: number, type: string, data: object = {}): void {
    const event = { number, type, at: "2026-12-01T00:00:00.000Z", data };
    if (!this.closed) act(() => this.heard.get(type)?.({ data: JSON.stringify(event) }));
  }

  close(): void {
    this.closed = true;
  }
}

let service = new Service();
globalThis.fetch = ((...asked: Parameters<Service["fetch"]>) => service.fetch(...asked)) as typeof fetch;

/** A service in place of the real one, until the next. */
export function standIn(): Service {
  service = new Service();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "requestAnimationFrame", "cancelAnimationFrame", "performance"] });
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
  vi.stubGlobal(
    "EventSource",
    class extends Stream {
      constructor(url: string) {
        super(url);
        service.streams.push(this);
      }
    },
  );
  vi.stubGlobal("scrollTo", () => undefined);
  vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener() {}, removeEventListener() {} }));
  show("visible");
  sessionStorage.clear();
  return service;
}

/** Let time pass, and everything that waits for nothing else. */
export const pass = (ms = 0) => act(async () => void (await vi.advanceTimersByTimeAsync(ms)));

/** Hide or show the tab. */
export function show(state: "visible" | "hidden"): void {
  Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
  act(() => void document.dispatchEvent(new Event("visibilitychange")));
}

export interface Drawn {
  at: HTMLElement;
  end: () => void;
}

export function draw(node: ReactNode): Drawn {
  const at = document.body.appendChild(document.createElement("div"));
  const root = createRoot(at);
  act(() => root.render(node));
  return {
    at,
    end: () => {
      act(() => root.unmount());
      at.remove();
    },
  };
}
