/** What every field of the form needs: the request, its schema, what is wrong with it, and how to change it. */

import { createContext, useContext } from "react";

import type { Catalog } from "../api/types";
import type { Json } from "./json";
import { get } from "./pointer";
import { nullable, resolved, schemaAt, type Schema } from "./schema";

export interface Form {
  catalog: Catalog;
  schema: Schema;
  value: Json;
  /** What is wrong, by pointer. */
  findings: Map<string, string[]>;
  change: (...parts: [pointer: string, part: Json][]) => void;
}

const FormContext = createContext<Form | null>(null);

export const FormProvider = FormContext.Provider;

export function useForm(): Form {
  const form = useContext(FormContext);
  if (form === null) throw new Error("a field stands outside of a form");
  return form;
}

/** One part of the request with what the schema says of it; a block's option brings its own. */
export function usePart(pointer: string, own?: Schema) {
  const { schema, value, findings, change } = useForm();
  const found = own ?? schemaAt(schema, pointer) ?? {};
  return {
    id: `field${pointer}`,
    part: get(value, pointer),
    schema: resolved(schema, found),
    nullable: nullable(found),
    findings: findings.get(pointer) ?? [],
    set: (part: Json) => change([pointer, part]),
  };
}
