/** The service's own answers by short names; the types come from its OpenAPI document. */

import type { components } from "./schema";

type Schemas = components["schemas"];
/** As the client gives it: a pair is a list there. */
type Read<T> = T extends readonly (infer E)[] ? Read<E>[] : T extends object ? { [K in keyof T]: Read<T[K]> } : T;

export type Search = Schemas["Search"];
export type TrialEstimate = Schemas["TrialEstimate"];
export type Trial = Schemas["Trial"];
export type Report = Schemas["Report"];
export type Probabilities = Schemas["Probabilities"];
export type Architecture = Schemas["Architecture"];
export type Rule = Schemas["Rule"];
export type Artifact = Schemas["Artifact"];
export type Result = Schemas["Result"];
export type Metric = Schemas["Metric"];
export type ResultArchitecture = Schemas["ResultArchitecture"];
export type Dataset = Read<Schemas["Dataset"]>;
export type DatasetDetail = Read<Schemas["DatasetDetail"]>;
export type Card = Read<Schemas["Card"]>;
export type SyntheticTask = Schemas["SyntheticTask"];
export type Catalog = Schemas["Catalog"];
export type Block = Schemas["Block"];
export type SearchRequest = Schemas["SearchRequest"];
export type ProblemBody = Schemas["Problem"];
export type FieldError = Schemas["FieldError"];
