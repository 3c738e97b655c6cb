/**
 * Reads JSON with the place of every value, so that an error of the service can mark its line in the text.
 *
 * Strict as the service is: no comments, no trailing commas, no name twice in one object.
 */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A place in a text, both counted from 1. */
export interface Place {
  line: number;
  column: number;
}

export type Parsed =
  { ok: true; value: Json; places: Map<string, Place> } | { ok: false; message: string; place: Place };

class Refused extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
  }
}

/** The value of a text and, by JSON pointer, where each part of it begins; or what is wrong and where. */
export function parse(text: string): Parsed {
  const starts = lineStarts(text);
  const places = new Map<string, Place>();
  let at = 0;

  const fail = (message: string, where = at): never => {
    throw new Refused(message, where);
  };
  const space = () => {
    while (at < text.length && " \t\n\r".includes(text[at]!)) at++;
  };
  const found = () =>
    at >= text.length
      ? "found the end"
      : text[at] === '"'
        ? "found a quotation mark"
        : `found ${JSON.stringify(text[at])}`;
  const expect = (character: string, where: string) => {
    if (text[at] !== character) fail(`expected ${JSON.stringify(character)} ${where}, ${found()}`);
    at++;
  };

  const string = (): string => {
    const start = at;
    at++;
    while (at < text.length && text[at] !== '"') {
      if (text.charCodeAt(at) < 0x20) fail("a string ends on its own line; is a quotation mark missing?");
      at += text[at] === "\\" ? 2 : 1;
    }
    if (at >= text.length) fail("a string has no end; a quotation mark is missing", start);
    at++;
    try {
      return JSON.parse(text.slice(start, at)) as string;
    } catch {
      return fail("a string holds an escape that JSON does not know", start);
    }
  };

  const number = (): number => {
    const match = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/.exec(text.slice(at, at + 400));
    if (!match) return fail(`expected a value, ${found()}`);
    const value = Number(match[0]);
    if (!Number.isFinite(value)) fail(`number ${match[0].slice(0, 24)} is out of range`);
    at += match[0].length;
    if (/[\w.]/.test(text[at] ?? "")) fail(`expected a number, ${found()} in it`);
    return value;
  };

  const word = (): Json => {
    for (const [name, value] of [
      ["true", true],
      ["false", false],
      ["null", null],
    ] as const) {
      if (text.startsWith(name, at) && !/\w/.test(text[at + name.length] ?? "")) {
        at += name.length;
        return value;
      }
    }
    return fail(`expected a value, ${found()}`);
  };

  const object = (pointer: string): Json => {
    const value: { [name: string]: Json } = Object.create(null);
    at++;
    space();
    if (text[at] === "}") {
      at++;
      return { ...value };
    }
    for (;;) {
      space();
      if (text[at] !== '"') fail(`expected a name in quotation marks, ${found()}`);
      const where = at;
      const name = string();
      if (name in value) fail(`name ${JSON.stringify(name)} stands twice in one object`, where);
      space();
      expect(":", `after the name ${JSON.stringify(name)}`);
      value[name] = any(`${pointer}/${escape(name)}`, where);
      space();
      if (text[at] === "}") break;
      expect(",", 'or "}"');
    }
    at++;
    return { ...value };
  };

  const array = (pointer: string): Json => {
    const value: Json[] = [];
    at++;
    space();
    if (text[at] === "]") {
      at++;
      return value;
    }
    for (;;) {
      value.push(any(`${pointer}/${value.length}`));
      space();
      if (text[at] === "]") break;
      expect(",", 'or "]"');
    }
    at++;
    return value;
  };

  // A member's place is that of its name: that is where a reader looks.
  const any = (pointer: string, where?: number): Json => {
    space();
    places.set(pointer, placeOf(starts, where ?? at));
    if (pointer.split("/").length > 32) fail("nested deeper than 32 levels");
    const character = text[at];
    if (character === "{") return object(pointer);
    if (character === "[") return array(pointer);
    if (character === '"') return string();
    if (character === "-" || (character !== undefined && /\d/.test(character))) return number();
    return word();
  };

  try {
    const value = any("");
    space();
    if (at < text.length) fail(`expected the end, ${found()}`);
    return { ok: true, value, places };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { ok: false, message: error.message, place: placeOf(starts, Math.min(error.at, text.length)) };
  }
}

/** The place of a pointer's value, or of the innermost part of it that the text has. */
export function placeFor(places: Map<string, Place>, pointer: string): Place | undefined {
  for (let path = pointer; ; path = path.slice(0, path.lastIndexOf("/"))) {
    const place = places.get(path);
    if (place || !path) return place;
  }
}

/**
 * Text of a value for people: parts of a request on lines of their own, and what lies deeper on one line if it fits,
 * so that a candidate is a line.
 */
export function format(value: Json, width = 88, depth = 0): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const line = inline(value);
  const empty = Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
  if (empty || (depth > 1 && depth * 2 + line.length < width)) return line;
  if (Array.isArray(value) && value.every((each) => typeof each !== "object" || each === null)) return line;
  const inner = "  ".repeat(depth + 1);
  const outer = "  ".repeat(depth);
  if (Array.isArray(value)) {
    return `[\n${value.map((each) => inner + format(each, width, depth + 1)).join(",\n")}\n${outer}]`;
  }
  const members = Object.entries(value).map(
    ([name, each]) => `${inner}${JSON.stringify(name)}: ${format(each, width, depth + 1)}`,
  );
  return `{\n${members.join(",\n")}\n${outer}}`;
}

function inline(value: Json): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(inline).join(", ")}]`;
  const members = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${inline(each)}`);
  return `{${members.join(", ")}}`;
}

export function escape(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

function placeOf(starts: number[], at: number): Place {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= at) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: at - starts[low]! + 1 };
}
