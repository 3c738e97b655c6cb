/** Where one can go, the theme, and whether the service answers. */

import { useAway } from "../api/connection";
import { Link } from "../router";
import { ThemeSwitch } from "./ThemeSwitch";

const LINKS = [
  { href: "/", words: "Searches", starts: "/searches" },
  { href: "/new", words: "New search", starts: "/new" },
  { href: "/datasets", words: "Texts", starts: "/datasets" },
];

export function TopBar({ path }: { path: string }) {
  const away = useAway();
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
