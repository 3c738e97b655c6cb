import type { HTMLAttributes, ReactNode } from "react";

/** A quiet surface with a heading; `aside` stands at the heading's right. */
export function Card({
  title,
  aside,
  children,
  className = "",
  ...rest
}: Omit<HTMLAttributes<HTMLElement>, "title"> & { title?: ReactNode; aside?: ReactNode }) {
  return (
    <section className={`card ${className}`} {...rest}>
      {(title || aside) && (
        <header>
          <h2>{title}</h2>
          {aside}
        </header>
      )}
      {children}
    </section>
  );
}
