/** What the dataset was encoded with so far: kept, so that no search encodes it again. */

import type { DatasetDetail } from "../api/types";
import { Card } from "../ui/Card";
import { count, fixed } from "../ui/format";
import { Table } from "../ui/Table";

export function Encodings({ dataset: { encodings, n_bytes, kind } }: { dataset: DatasetDetail }) {
  const perToken = kind === "text" && n_bytes !== null;
  return (
    <Card title="Encodings">
      {encodings.length === 0 ? (
        <p className="quiet">None yet: the first search with a tokenizer encodes it, and later ones read the same file.</p>
      ) : (
        <Table
          label="encodings"
          head={
            <>
              <th>tokenizer</th>
              <th className="figure">vocabulary</th>
              <th className="figure">tokens</th>
              {perToken && <th className="figure">bytes a token</th>}
            </>
          }
        >
          {encodings.map(({ tokenizer, vocab_size, n_tokens }) => {
            const tokens = Object.values(n_tokens).reduce((sum, each) => sum + each, 0);
            return (
              <tr key={JSON.stringify(tokenizer)}>
                <td>{tokenizerWords(tokenizer)}</td>
                <td className="figure">{count(vocab_size)}</td>
                <td className="figure">{count(tokens)}</td>
                {perToken && <td className="figure">{tokens ? fixed(n_bytes / tokens, 2) : "–"}</td>}
              </tr>
            );
          })}
        </Table>
      )}
    </Card>
  );
}

/** "words, at most 10,000, seen 3 times"; "tokenizer.json my-bpe". */
export function tokenizerWords(tokenizer: DatasetDetail["encodings"][number]["tokenizer"]): string {
  const { type, vocab_size, min_count, name } = tokenizer as {
    type?: string;
    vocab_size?: number | null;
    min_count?: number;
    name?: string | null;
  };
  if (type === "file") return `tokenizer.json ${name ?? ""}`.trim();
  if (type === "given") return "as given";
  const most = vocab_size == null ? "" : `, at most ${count(vocab_size)}`;
  const least = (min_count ?? 1) > 1 ? `, seen ${count(min_count ?? 1)} times` : "";
  return `${type ?? "?"}${most}${least}`;
}
