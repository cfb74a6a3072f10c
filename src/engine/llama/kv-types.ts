/** The types that keys and values can be kept in. */

/** Bytes of one element; the quantized types hold blocks of 32 with one scale. */
export const kvElementBytes = { f16: 2, q8_0: 34 / 32, q4_0: 18 / 32 } as const;
