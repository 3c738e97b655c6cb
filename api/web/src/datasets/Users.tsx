/** Searches by name and state, from their ids. */

import { api, useQuery } from "../api/client";
import { Link } from "../router";

export function Users({ ids }: { ids: readonly string[] }) {
  return (
    <ul className="users" aria-label="in use by">
      {ids.map((id) => (
        <User key={id} id={id} />
      ))}
    </ul>
  );
}

function User({ id }: { id: string }) {
  const { data } = useQuery(`search ${id}`, (signal) =>
    api.GET("/api/v1/searches/{search_id}", { params: { path: { search_id: id } }, signal }),
  );
  return (
    <li>
      <Link href={`/searches/${id}`}>{data?.name ?? id}</Link> <span className="quiet">{data?.state}</span>
    </li>
  );
}
