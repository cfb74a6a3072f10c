/** Native memory that is kept between uses: the first touch of fresh pages costs more than most copies into them. */
import koffi from "koffi";

export interface Slab {
  /** Memory of at least so many bytes, valid until the next call. Its content is not kept when it grows. */
  reserve(bytes: number): bigint;
  free(): void;
}

/** An empty slab; it grows to the largest size asked for, and a little more. */
export function createSlab(): Slab {
  let address: bigint | undefined;
  let capacity = 0;
  const free = () => {
    if (address !== undefined) koffi.free(address);
    address = undefined;
    capacity = 0;
  };
  return {
    reserve(bytes) {
      if (address !== undefined && bytes <= capacity) return address;
      free();
      capacity = Math.ceil(bytes * 1.25);
      address = koffi.alloc(koffi.types.uint8_t, capacity) as bigint;
      return address;
    },
    free,
  };
}
