/** Fields that are seldom needed, folded; they open by themselves when something is wrong in them. */

import { useState, type ReactNode } from "react";

import { useForm } from "./context";

export function Fold({
  summary,
  parts,
  className = "",
  children,
}: {
  summary: ReactNode;
  /** Pointers of what stands inside. */
  parts: string[];
  className?: string;
  children: ReactNode;
}) {
  const { findings } = useForm();
  const [open, setOpen] = useState(false);
  const wrong = [...findings.keys()].some((each) => parts.some((part) => each === part || each.startsWith(`${part}/`)));
  return (
    // What has opened by itself stays open: it must not close under the hand that corrects it.
    <details
      className={`form-more ${className}`}
      open={open || wrong}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>{summary}</summary>
      {children}
    </details>
  );
}
