/** The pages of one arena: who owns how many, which are free. A page has an owner for each slot that holds it and a pin for each of these slots that runs. */

/** A page's number, unique in its arena. */
export type PageId = number;

export interface PagePool {
  readonly total: number;
  /** Pages that nobody owns. */
  readonly free: number;
  /** Pages that a running slot holds; the rest, total - free - pinned, are cached. */
  readonly pinned: number;
  owners(page: PageId): number;
  pins(page: PageId): number;
  /** A free page with one owner, or undefined when there is none. */
  take(): PageId | undefined;
  addOwner(page: PageId): void;
  /** The page becomes free with its last owner. */
  dropOwner(page: PageId): void;
  pin(page: PageId): void;
  unpin(page: PageId): void;
}

export function createPagePool(total: number): PagePool {
  const owners = new Uint16Array(total);
  const pins = new Uint16Array(total);
  const freeList = Array.from({ length: total }, (_, index) => total - 1 - index);
  let pinned = 0;

  return {
    total,
    get free() {
      return freeList.length;
    },
    get pinned() {
      return pinned;
    },
    owners: (page) => owners[page] as number,
    pins: (page) => pins[page] as number,
    take() {
      const page = freeList.pop();
      if (page !== undefined) owners[page] = 1;
      return page;
    },
    addOwner(page) {
      owners[page] = (owners[page] as number) + 1;
    },
    dropOwner(page) {
      owners[page] = (owners[page] as number) - 1;
      if (owners[page] === 0) freeList.push(page);
    },
    pin(page) {
      if (pins[page] === 0) pinned++;
      pins[page] = (pins[page] as number) + 1;
    },
    unpin(page) {
      pins[page] = (pins[page] as number) - 1;
      if (pins[page] === 0) pinned--;
    },
  };
}
