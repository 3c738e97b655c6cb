/** What the whole page must know: whether the service answers, and whether it asks for its token. */

import { useSyncExternalStore } from "react";

class Flag {
  private value = false;
  private readonly listeners = new Set<() => void>();

  set(value: boolean): void {
    if (value === this.value) return;
    this.value = value;
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

const away = new Flag();
const locked = new Flag();
const signedIn = new Set<() => void>();

export const connection = { lost: () => away.set(true), found: () => away.set(false) };

export const session = {
  /** The service answered 401: the page shows the sign-in in place. */
  ask: () => locked.set(true),
  isLocked: locked.get,
  /** The cookie is there: everything on the page asks again. */
  opened: () => {
    locked.set(false);
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
