import type { AnchorHTMLAttributes, ButtonHTMLAttributes } from "react";

import { Link } from "../router";

type Kind = "plain" | "primary" | "danger" | "quiet";

const classes = (kind: Kind) => (kind === "plain" ? "button" : `button button-${kind}`);

export function Button({
  kind = "plain",
  type = "button",
  className = "",
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { kind?: Kind }) {
  return <button type={type} className={`${classes(kind)} ${className}`} {...rest} />;
}

/** A link that looks like a button: it leads somewhere in this page. */
export function ButtonLink({
  kind = "plain",
  className = "",
  ...rest
}: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string; kind?: Kind }) {
  return <Link className={`${classes(kind)} ${className}`} {...rest} />;
}
