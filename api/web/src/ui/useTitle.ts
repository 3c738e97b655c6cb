import { useEffect } from "react";

/** The title of the browser's tab: "night run, 45% · Blockwright"; null leaves it as it is. */
export function useTitle(title: string | null): void {
  useEffect(() => {
    if (title !== null) document.title = `${title} · Blockwright`;
  }, [title]);
}
