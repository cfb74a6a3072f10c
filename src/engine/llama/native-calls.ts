/** How this process calls native code. */
import koffi from "koffi";

// llama.cpp recurses on the calling thread's stack, most of all std::regex in pre-tokenizers; koffi's default is 128 KiB.
// Only touched pages become resident.
const nativeStackBytes = 16 * 1024 * 1024;

/** To be called before any native call of the process: koffi's settings cannot be changed after its first use. Later calls do nothing. */
export function prepareNativeCalls(): void {
  if (koffi.config().async_stack_size === nativeStackBytes) return;
  koffi.config({ ...koffi.config(), async_stack_size: nativeStackBytes, sync_stack_size: nativeStackBytes, resident_async_pools: 4 });
}
