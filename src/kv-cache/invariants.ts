/** What must hold of a KV cache's books at any moment between steps. */
import { pagesFor } from "./geometry.js";
import type { Arena, KvCache } from "./kv-cache.js";

/** Every breach found, in words; empty when the books are right. Cost grows with the number of pages: for tests and diagnosis. */
export function findBreaches(cache: KvCache): string[] {
  return cache.arenas.flatMap((arena) => breachesIn(arena, cache.geometry.pageTokens));
}

function breachesIn(arena: Arena, pageTokens: number): string[] {
  const breaches: string[] = [];
  const owners = new Map<number, number>();
  const pins = new Map<number, number>();
  for (const slot of arena.slots) {
    const expected = pagesFor(slot.tokens.length, pageTokens);
    if (slot.pages.length !== expected) breaches.push(`slot ${slot.id} holds ${slot.pages.length} pages for ${slot.tokens.length} tokens`);
    if (new Set(slot.pages).size !== slot.pages.length) breaches.push(`slot ${slot.id} holds a page twice`);
    for (const page of slot.pages) {
      owners.set(page, (owners.get(page) ?? 0) + 1);
      if (slot.isRunning) pins.set(page, (pins.get(page) ?? 0) + 1);
    }
  }
  const { pool } = arena;
  for (let page = 0; page < pool.total; page++) {
    if (pool.owners(page) !== (owners.get(page) ?? 0))
      breaches.push(`page ${page} has ${pool.owners(page)} owners in the books, ${owners.get(page) ?? 0} in the slots`);
    if (pool.pins(page) !== (pins.get(page) ?? 0)) breaches.push(`page ${page} has ${pool.pins(page)} pins in the books, ${pins.get(page) ?? 0} in the slots`);
  }
  if (pool.free + owners.size !== pool.total) breaches.push(`${pool.free} free and ${owners.size} owned pages are not ${pool.total}`);
  if (pool.pinned !== pins.size) breaches.push(`${pool.pinned} pinned pages in the books, ${pins.size} in the slots`);
  breaches.push(...sharedContentBreaches(arena, pageTokens));
  return breaches;
}

/** A page that two slots hold must be the same page of the same text for both. */
function sharedContentBreaches(arena: Arena, pageTokens: number): string[] {
  const breaches: string[] = [];
  const first = new Map<number, { slot: number; index: number; text: string }>();
  for (const slot of arena.slots) {
    slot.pages.forEach((page, index) => {
      const text = slot.tokens.view(0, (index + 1) * pageTokens).join(",");
      const seen = first.get(page);
      if (seen === undefined) first.set(page, { slot: slot.id, index, text });
      else if (seen.index !== index || seen.text !== text) breaches.push(`page ${page} holds different text for slots ${seen.slot} and ${slot.id}`);
    });
  }
  return breaches;
}
