/** Names of datasets: as the service takes them, and suggested from a file's name. */

import { stemOf } from "./format";

const PATTERN = /^[a-z0-9][a-z0-9_.-]{0,63}$/;

/** "My Book (final).txt" gives "my-book-final"; "" where nothing is left. */
export function suggested(fileName: string, taken: readonly string[] = []): string {
  const plain = stemOf(fileName)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9_.-]+/g, "-")
    .replace(/^[^a-z0-9]+|[-_.]+$/g, "")
    .slice(0, 60)
    .replace(/[-_.]+$/, "");
  if (plain === "") return "";
  for (let number = 1; ; number++) {
    const name = number === 1 ? plain : `${plain}-${number}`;
    if (!taken.includes(name)) return name;
  }
}

/** What is wrong with a name; null where the service takes it. A name that is taken may still stand for this very file. */
export function wrongName(name: string, builtIn: readonly string[]): string | null {
  if (name === "") return "a dataset needs a name";
  if (builtIn.includes(name)) return `${name} is built in; take another name`;
  if (PATTERN.test(name)) return null;
  if (!/^[a-z0-9]/.test(name)) return "a name begins with a small letter or a digit";
  if (name.length > 64) return `a name has at most 64 characters, not ${name.length}`;
  return "a name has small letters, digits, dots, dashes and underscores";
}
