/** Submit a new search. */

export function NewPage() {
  return <h1>New search</h1>;
}
