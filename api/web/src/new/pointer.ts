/** JSON pointers (RFC 6901) into a request: read, and write without changing what others hold. */

import type { Json } from "./json";

export function parts(pointer: string): string[] {
  if (!pointer) return [];
  return pointer
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

export function get(value: Json | undefined, pointer: string): Json | undefined {
  let found = value;
  for (const part of parts(pointer)) {
    if (found === null || typeof found !== "object") return undefined;
    found = Array.isArray(found) ? found[Number(part)] : Object.hasOwn(found, part) ? found[part] : undefined;
  }
  return found;
}

/** A copy with one part replaced; objects on the way are made where the value has none. */
export function set(value: Json | undefined, pointer: string, part: Json): Json {
  const [first, ...rest] = parts(pointer);
  if (first === undefined) return part;
  const tail = rest.map((each) => `/${each.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  if (Array.isArray(value)) {
    const copy = [...value];
    copy[Number(first)] = set(copy[Number(first)], tail, part);
    return copy;
  }
  const members = value !== null && typeof value === "object" ? (value as { [name: string]: Json }) : {};
  return { ...members, [first]: set(members[first], tail, part) };
}

export function same(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) return true;
  if (one === null || other === null || typeof one !== "object" || typeof other !== "object") return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every(
    (name) => Object.hasOwn(other, name) && same(get(one, `/${escaped(name)}`), get(other, `/${escaped(name)}`)),
  );
}

function escaped(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}
