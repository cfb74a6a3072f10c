/** Keeps temperatures away from those so small that llama.cpp's samplers cannot compute with them. */
import type { SamplingParameters } from "../protocol.js";

/**
 * A smaller temperature is 0. Logits are known to about a millionth, so that dividing by less only tells apart what is equal,
 * while the samplers compute in 32 bits with what comes out, and lose themselves in infinities.
 */
const leastTemperature = 1e-5;

/** The same parameters, with a temperature that is 0 or can be computed with, also where a dynamic one is lowest. */
export function computableTemperature(sampling: SamplingParameters): SamplingParameters {
  const { temperature, dynamicTemperature } = sampling;
  if (temperature < leastTemperature) return { ...sampling, temperature: 0 };
  if (dynamicTemperature === undefined || temperature - dynamicTemperature.range >= leastTemperature) return sampling;
  const highest = temperature + dynamicTemperature.range;
  const centre = (highest + leastTemperature) / 2;
  return { ...sampling, temperature: centre, dynamicTemperature: { ...dynamicTemperature, range: highest - centre } };
}
