/** The state in a word, a colour and a shape; a search that is being stopped reads "cancelling". */
export function StateBadge({ state, cancelling = false }: { state: string; cancelling?: boolean }) {
  const word = cancelling && state === "running" ? "cancelling" : state;
  return <span className={`state state-${word}`}>{word}</span>;
}
