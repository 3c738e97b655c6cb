/** The history API as React hooks: what is shown is in the URL, so that any view can be sent to somebody. */

import { type AnchorHTMLAttributes, type MouseEvent, useSyncExternalStore } from "react";

export interface Place {
  /** Without a slash at its end, but for the root. */
  path: string;
  query: URLSearchParams;
}

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}

export function placeOf(href: string): Place {
  const [path = "", query = ""] = href.split(/\?(.*)/s); // no URL: "//x" would be a host
  return { path: path.replace(/\/+$/, "") || "/", query: new URLSearchParams(query) };
}

const address = () => window.location.pathname + window.location.search;

/** Where we are; a component that calls it is drawn again when that changes. */
export function useLocation(): Place {
  return placeOf(useSyncExternalStore(subscribe, address));
}

/** Go to an address of this page; `replace` leaves no step for the back button (filters, sliders). */
export function navigate(url: string, { replace = false }: { replace?: boolean } = {}): void {
  if (url === address()) return;
  window.history[replace ? "replaceState" : "pushState"](null, "", url);
  if (!replace) window.scrollTo(0, 0);
  listeners.forEach((listener) => listener());
}

/** Tells later whether this page is still shown: an answer that comes late takes nobody away from another one. */
export function here(): () => boolean {
  const { pathname } = window.location;
  return () => window.location.pathname === pathname;
}

/** The present address with some of its query changed; null removes a key. */
export function withQuery(changes: Record<string, string | number | null>): string {
  const query = new URLSearchParams(window.location.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(key);
    else query.set(key, String(value));
  }
  const text = query.toString();
  return window.location.pathname + (text && `?${text}`);
}

export function Link({ href, onClick, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
    if (event.defaultPrevented || !plain) return;
    event.preventDefault();
    navigate(href);
  };
  return <a href={href} onClick={follow} {...rest} />;
}
