/** What the whole page must know: whether the service answers, and whether it asks for its token. */

import { useSyncExternalStore } from "react";

function stored(key: string): boolean {
  try {
    return localStorage.getItem(key) !== null;
  } catch {
    return false; // storage is forbidden
  }
}

function store(key: string, value: boolean): void {
  try {
    if (value) localStorage.setItem(key, "1");
    else localStorage.removeItem(key);
  } catch {
    // as above: known until the page is left
  }
}

class Flag {
  private value: boolean;
  private readonly listeners = new Set<() => void>();

  /** @param key keeps the flag in this browser's storage. */
  constructor(private readonly key: string | null = null) {
    this.value = key !== null && stored(key);
  }

  set(value: boolean): void {
    if (value === this.value) return;
    this.value = value;
    if (this.key !== null) store(this.key, value);
    this.listeners.forEach((listener) => listener());
  }

  readonly get = () => this.value;

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };
}

const AGAIN_MS = 2000;
const away = new Flag();
const locked = new Flag();
const signed = new Flag("blockwright-signed-in");
const signedIn = new Set<() => void>();

let looking: ReturnType<typeof setInterval> | undefined;

export const connection = {
  /** Looks for the service until it answers: a page that asks for nothing by itself goes on too. */
  lost: () => {
    away.set(true);
    looking ??= setInterval(() => {
      if (document.visibilityState === "visible") fetch("/healthz", { cache: "no-store" }).then(answered, () => undefined);
    }, AGAIN_MS);
  },
  found: () => {
    clearInterval(looking);
    looking = undefined;
    away.set(false);
  },
};
/** What stands before a service that is away answers in its place. */
const answered = (answer: Response) => answer.ok && connection.found();

let signIns = 0;

export const session = {
  /** How often somebody has signed in; see `ask`. */
  turn: () => signIns,
  /**
   * The service answered 401: the page shows the sign-in in place.
   *
   * @param turn at which it was asked: what was refused before a sign-in says nothing of the session since.
   */
  ask: (turn = signIns) => {
    if (turn !== signIns) return;
    locked.set(true);
    signed.set(false);
  },
  isLocked: locked.get,
  /** The cookie is there: everything on the page asks again. */
  opened: () => {
    signIns++;
    locked.set(false);
    signed.set(true);
    signedIn.forEach((listener) => listener());
  },
  onSignIn: (listener: () => void) => {
    signedIn.add(listener);
    return () => {
      signedIn.delete(listener);
    };
  },
};

export const useAway = () => useSyncExternalStore(away.subscribe, away.get);
export const useLocked = () => useSyncExternalStore(locked.subscribe, locked.get);
/** Whether this browser has signed in: the cookie itself is out of reach of scripts. */
export const useSigned = () => useSyncExternalStore(signed.subscribe, signed.get);
