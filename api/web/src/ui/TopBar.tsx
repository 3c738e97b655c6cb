/** Where one can go, the theme, and whether the service answers. */

import { connection, session, useAway, useSigned } from "../api/connection";
import { Link } from "../router";
import { Button } from "./Button";
import { ThemeSwitch } from "./ThemeSwitch";

const LINKS = [
  { href: "/", words: "Searches", starts: "/searches" },
  { href: "/new", words: "New search", starts: "/new" },
  { href: "/datasets", words: "Datasets", starts: "/datasets" },
];

export function TopBar({ path }: { path: string }) {
  const away = useAway();
  const signed = useSigned();
  return (
    <header className="top">
      <div className="top-inner">
        <Link href="/" className="brand" aria-label="Blockwright, all searches">
          <img src="/icon.svg" width="22" height="22" alt="" />
          <span className="brand-name">Blockwright</span>
        </Link>
        <nav aria-label="pages">
          {LINKS.map(({ href, words, starts }) => (
            <Link key={href} href={href} aria-current={path === href || path.startsWith(starts) ? "page" : undefined}>
              {words}
            </Link>
          ))}
        </nav>
        {signed && (
          <Button kind="quiet" onClick={() => void signOut()}>
            Sign out
          </Button>
        )}
        <ThemeSwitch />
      </div>
      {away && (
        <div className="away" role="status">
          The service does not answer; this page goes on as soon as it does. Searches run on meanwhile.
        </div>
      )}
    </header>
  );
}

async function signOut(): Promise<void> {
  try {
    const answer = await fetch("/api/v1/session", { method: "DELETE" });
    if (answer.ok || answer.status === 401) session.ask(); // 401: the session had ended by itself
  } catch {
    connection.lost();
  }
}
