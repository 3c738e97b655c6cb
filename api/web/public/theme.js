// Before the first paint, so that a chosen theme does not flash; a file of its own, since the content policy allows no inline script.
try {
  const theme = localStorage.getItem("blockwright-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // storage is forbidden: the system's theme it is
}
