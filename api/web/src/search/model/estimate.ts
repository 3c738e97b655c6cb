/** What a search trial was estimated to take before one was placed, and what the trials took, in a sentence. */

import type { Result, Search, TrialEstimate } from "../../api/types";
import { bytes, duration, fixed } from "../../ui/format";

/** null before the estimate is made, and of a search of an older version. */
export function estimateOf(search: Search): string | null {
  const known = (search.result as unknown as Result | null)?.estimate ?? search.estimate;
  return known ? sentence(known) : null;
}

function sentence({ reason, seconds, memory_bytes, prune_seconds, measured }: TrialEstimate): string {
  let told = reason
    ? `No estimate of a trial: ${reason}`
    : `Estimated before it began: about ${span(seconds)} and ${bytes(memory_bytes)} a trial`;
  if (!reason && prune_seconds) told += `, parsimony pass about ${span(prune_seconds)} more`;
  if (measured) {
    told += `; measured ${span(measured.seconds)}`;
    if (measured.prune_seconds) told += `, parsimony pass ${span(measured.prune_seconds)}`;
  }
  return told;
}

/** Two digits where `duration` would leave fewer. */
function span(seconds: number | null | undefined): string {
  if (seconds == null || seconds < 9.95) return `${fixed(seconds, 1)} s`;
  return seconds < 600 ? `${fixed(seconds, 0)} s` : duration(seconds);
}
