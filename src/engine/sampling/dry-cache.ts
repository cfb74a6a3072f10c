/** DRY samplers, made once per setting: making one searches the whole vocabulary for every sequence breaker. */
import type { SamplerPointer } from "../llama/functions.js";
import type { LlamaModel } from "../llama/model.js";
import type { SamplingParameters } from "../protocol.js";

export type DrySettings = NonNullable<SamplingParameters["dry"]>;

export interface DryCache {
  /** A new sampler that looks at the last `lastN` tokens; the caller owns it. */
  create(settings: DrySettings, lastN: number): SamplerPointer;
  free(): void;
}

const maxKept = 8;

export function createDryCache(model: LlamaModel): DryCache {
  const { native } = model.llama;
  const kept = new Map<string, SamplerPointer>();
  return {
    create(settings, lastN) {
      const key = JSON.stringify([settings, lastN]);
      const original = kept.get(key) ?? makeDry(model, settings, lastN);
      kept.delete(key);
      kept.set(key, original); // the latest is last
      for (const [oldKey, sampler] of kept) {
        if (kept.size <= maxKept) break;
        kept.delete(oldKey);
        native.llama_sampler_free(sampler);
      }
      return native.llama_sampler_clone(original);
    },
    free() {
      for (const sampler of kept.values()) native.llama_sampler_free(sampler);
      kept.clear();
    },
  };
}

function makeDry(model: LlamaModel, settings: DrySettings, lastN: number): SamplerPointer {
  // A NUL would end the C string, and an empty breaker means nothing.
  const breakers = settings.sequenceBreakers.filter((text) => text !== "" && !text.includes("\0"));
  const { multiplier, base, allowedLength } = settings;
  return model.llama.native.llama_sampler_init_dry(model.vocabulary, multiplier, base, allowedLength, lastN, breakers, breakers.length);
}
