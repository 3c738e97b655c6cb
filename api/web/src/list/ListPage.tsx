/** All searches, newest first. */

export function ListPage() {
  return <h1>Searches</h1>;
}
