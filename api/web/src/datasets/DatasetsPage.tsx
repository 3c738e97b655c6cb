/** The texts that searches may name. */

export function DatasetsPage() {
  return <h1>Texts</h1>;
}
