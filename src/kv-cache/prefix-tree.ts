/**
 * Finds which slots hold a prefix of some tokens. A node stands for one full page after the pages of its parents;
 * its key is a hash of the page's tokens, and the tokens themselves decide, never the hash alone.
 * Slots of different salts hang from different roots and never meet.
 */
import type { SlotId } from "./geometry.js";
import { commonLength, type TokenBuffer } from "./token-buffer.js";

interface Node {
  readonly parent: Node | undefined;
  readonly key: number;
  readonly tokens: Int32Array;
  readonly children: Map<number, Node[]>;
  readonly slots: Set<SlotId>;
}

export interface PrefixTree {
  /** Takes note that the slot now holds one more full page: tokens [page * pageTokens, (page + 1) * pageTokens). */
  addPage(slot: SlotId, tokens: TokenBuffer): void;
  /** Forgets the slot's pages from `pages` on. */
  trim(slot: SlotId, pages: number): void;
  /** The slot, which has no pages here, will hold content of this trust group. */
  enter(slot: SlotId, salt: string): void;
  /**
   * Slots of the trust group that hold some of the first `limit` of these tokens, and how many, those with more full pages first.
   * With `isEnough`, slots with fewer full pages than one that is enough are left out, and so are most where many have the same full pages:
   * they differ in a part of a page at most, and a popular prefix must not cost a comparison with everybody who has it.
   */
  match(salt: string, tokens: TokenBuffer, limit: number, isEnough?: (slot: SlotId) => boolean): Map<SlotId, number>;
  /** Nodes at present, for tests and figures. */
  readonly size: number;
}

/** How many slots with the same full pages are compared token by token. */
const comparedSlots = 32;

/** @param contentOf the tokens that a slot holds now */
export function createPrefixTree(pageTokens: number, contentOf: (slot: SlotId) => TokenBuffer): PrefixTree {
  const roots = new Map<string, Node>();
  const paths = new Map<SlotId, { salt: string; root: Node; nodes: Node[] }>();
  let size = 0;

  function rootOf(salt: string): Node {
    let root = roots.get(salt);
    if (root === undefined) {
      root = { parent: undefined, key: 0, tokens: new Int32Array(0), children: new Map(), slots: new Set() };
      roots.set(salt, root);
    }
    return root;
  }

  function removeFrom(node: Node, slot: SlotId): void {
    node.slots.delete(slot);
    if (node.slots.size > 0 || node.parent === undefined) return;
    const siblings = node.parent.children.get(node.key) ?? [];
    const rest = siblings.filter((sibling) => sibling !== node);
    if (rest.length > 0) node.parent.children.set(node.key, rest);
    else node.parent.children.delete(node.key);
    size--;
  }

  return {
    get size() {
      return size;
    },
    enter(slot, salt) {
      const old = paths.get(slot);
      if (old !== undefined) {
        old.root.slots.delete(slot);
        if (old.root.slots.size === 0) roots.delete(old.salt);
      }
      const root = rootOf(salt);
      root.slots.add(slot);
      paths.set(slot, { salt, root, nodes: [] });
    },
    addPage(slot, tokens) {
      const path = paths.get(slot);
      if (path === undefined) return;
      const page = path.nodes.length;
      const pageView = tokens.view(page * pageTokens, (page + 1) * pageTokens);
      const parent = path.nodes[page - 1] ?? path.root;
      let node = childWith(parent, pageView);
      if (node === undefined) {
        const key = hashTokens(pageView);
        node = { parent, key, tokens: pageView.slice(), children: new Map(), slots: new Set() };
        const siblings = parent.children.get(key);
        if (siblings === undefined) parent.children.set(key, [node]);
        else siblings.push(node);
        size++;
      }
      node.slots.add(slot);
      path.nodes.push(node);
    },
    trim(slot, pages) {
      const path = paths.get(slot);
      while (path !== undefined && path.nodes.length > pages) removeFrom(path.nodes.pop() as Node, slot);
    },
    match(salt, tokens, limit, isEnough) {
      const found = new Map<SlotId, number>();
      const root = roots.get(salt);
      if (root === undefined) return found;
      const path = [root];
      for (let page = 0; (page + 1) * pageTokens <= limit; page++) {
        const next = childWith(path[page] as Node, tokens.view(page * pageTokens, (page + 1) * pageTokens));
        if (next === undefined) break;
        path.push(next);
      }
      let hasEnough = false;
      for (let depth = path.length - 1; depth >= 0 && !hasEnough; depth--) {
        let examined = 0;
        for (const slot of (path[depth] as Node).slots) {
          const isNeeded = isEnough === undefined || examined < comparedSlots || (!hasEnough && isEnough(slot));
          if (!isNeeded || found.has(slot)) continue;
          const common = commonLength(contentOf(slot), tokens, depth * pageTokens, limit);
          if (common === 0) continue;
          examined++;
          found.set(slot, common);
          hasEnough ||= isEnough?.(slot) ?? false;
        }
      }
      return found;
    },
  };
}

function childWith(parent: Node, tokens: Int32Array): Node | undefined {
  if (parent.children.size === 0) return undefined;
  return parent.children.get(hashTokens(tokens))?.find((node) => equalTokens(node.tokens, tokens));
}

/** FNV-1a over the ids, 32 bits. */
export function hashTokens(tokens: Int32Array): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < tokens.length; i++) hash = Math.imul(hash ^ (tokens[i] as number), 0x01000193);
  return hash >>> 0;
}

function equalTokens(a: Int32Array, b: Int32Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
