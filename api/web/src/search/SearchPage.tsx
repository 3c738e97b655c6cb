/** The page of one search. */

export function SearchPage({ id }: { id: string }) {
  return <h1>Search {id}</h1>;
}
