/** Light, dark, or as the system; public/theme.js reads the same key before the first paint. */

import { useState } from "react";

import { Button } from "./Button";

const KEY = "blockwright-theme";
const NEXT = { system: "light", light: "dark", dark: "system" } as const;
const SIGN = { system: "◐", light: "☀", dark: "☾" } as const;
type Theme = keyof typeof NEXT;

function chosen(): Theme {
  const theme = document.documentElement.dataset["theme"];
  return theme === "light" || theme === "dark" ? theme : "system";
}

export function ThemeSwitch() {
  const [theme, setTheme] = useState<Theme>(chosen);
  const change = () => {
    const next = NEXT[theme];
    if (next === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = next;
    try {
      if (next === "system") localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, next);
    } catch {
      // storage is forbidden: the choice holds until the page is left
    }
    setTheme(next);
    window.dispatchEvent(new Event("blockwright-theme")); // canvases draw themselves anew
  };
  return (
    <Button kind="quiet" onClick={change} title={`theme: ${theme}`} aria-label={`theme: ${theme}; change`}>
      <span aria-hidden="true">{SIGN[theme]}</span>
    </Button>
  );
}
