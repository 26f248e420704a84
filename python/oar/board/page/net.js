// Answers of the server. What has not changed is not sent again.

const kept = new Map();
const MOST_KEPT = 400;

export class Gone extends Error {}

export async function ask(name, query = {}) {
  const url = `api/${name}?${new URLSearchParams(query)}`;
  const before = kept.get(url);
  const response = await fetch(url, { headers: before ? { "If-None-Match": before.tag } : {}, cache: "no-store" });
  if (response.status === 304) return before.answer;
  if (response.status === 404) throw new Gone(await response.text());
  if (!response.ok) throw new Error((await response.text()).trim() || response.statusText);
  const answer = await response.json(), tag = response.headers.get("ETag");
  kept.delete(url);
  if (tag) kept.set(url, { tag, answer });
  while (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
  return answer;
}

export function blobUrl(kind, run, tag, key) {
  return `api/blob?${new URLSearchParams({ kind, run, tag, key })}`;
}
