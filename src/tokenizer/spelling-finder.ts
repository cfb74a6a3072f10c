/** Finds given spellings in a text, in time that hardly depends on how many spellings there are. */

/** Visits every occurrence of every spelling in a text, overlapping ones too, by position. */
export type FindSpellings = (text: string, visit: (start: number, spelling: string) => void) => void;

/** A node of the tree of spellings: where each next UTF-16 unit leads, and the spelling that ends here, if one does. */
interface Node {
  /** Most nodes have one child: it is found without the map. */
  firstUnit?: number;
  firstChild?: Node;
  others?: Map<number, Node>;
  spelling?: string;
}

/** Prepares to find these spellings. A long text may consist of them: what it holds is visited, not collected. */
export function createSpellingFinder(spellings: readonly string[]): FindSpellings {
  const root: Node = {};
  for (const spelling of spellings) if (spelling !== "") addSpelling(root, spelling);
  // Nearly every character of a text begins no spelling: a table tells that faster than a map.
  const begins = new Uint8Array(0x10000);
  for (const spelling of spellings) if (spelling !== "") begins[spelling.charCodeAt(0)] = 1;

  return (text, visit) => {
    for (let start = 0; start < text.length; start += 1) {
      if (begins[text.charCodeAt(start)] === 0) continue;
      let node = childOf(root, text.charCodeAt(start));
      for (let end = start + 1; node !== undefined; end += 1) {
        if (node.spelling !== undefined) visit(start, node.spelling);
        node = childOf(node, text.charCodeAt(end)); // past the end the unit is NaN, which leads nowhere
      }
    }
  };
}

function childOf(node: Node, unit: number): Node | undefined {
  return node.firstUnit === unit ? node.firstChild : node.others?.get(unit);
}

function addSpelling(root: Node, spelling: string): void {
  let node = root;
  for (let at = 0; at < spelling.length; at += 1) node = childOf(node, spelling.charCodeAt(at)) ?? addChild(node, spelling.charCodeAt(at));
  node.spelling = spelling;
}

function addChild(node: Node, unit: number): Node {
  const child: Node = {};
  if (node.firstChild === undefined) {
    node.firstUnit = unit;
    node.firstChild = child;
  } else {
    node.others ??= new Map();
    node.others.set(unit, child);
  }
  return child;
}
