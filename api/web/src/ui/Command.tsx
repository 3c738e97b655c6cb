import { useState } from "react";

import { Button } from "./Button";

/** A command line to copy. */
export function Command({ children }: { children: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(children);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <span className="command">
      <pre>
        <code>{children}</code>
      </pre>
      {/* Without a secure context (plain http on another host) browsers offer no clipboard. */}
      {"clipboard" in navigator && (
        <Button kind="quiet" onClick={() => void copy()} aria-label={`copy: ${children}`}>
          {copied ? "copied" : "copy"}
        </Button>
      )}
    </span>
  );
}
