import type { ReactNode } from "react";

import type { Problem as Failure } from "../api/client";

/** A refusal of the service in full: what is wrong, where, and the number that the log has too. */
export function Problem({ problem, title, children }: { problem: Failure; title?: string; children?: ReactNode }) {
  return (
    <div className="problem" role="alert">
      <div>
        {title && <strong>{title}: </strong>}
        {problem.message}
      </div>
      {problem.errors.length > 0 && (
        <ul>
          {problem.errors.map((each, at) => (
            <li key={at}>
              <code>{each.pointer || "/"}</code> {each.detail}
            </li>
          ))}
        </ul>
      )}
      {children}
      <div className="quieter">
        <code>{problem.code}</code>
        {problem.requestId && (
          <>
            {" · request "}
            <code>{problem.requestId}</code>
          </>
        )}
      </div>
    </div>
  );
}
