// CUPTI's records of unified memory: what the emulated GPU has counted since the last flush.
#include <cupti.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tests/src/cuda/emulated_gpu/card.h"

namespace emulated = spillway::emulated;

namespace {

#if CUPTI_API_VERSION >= 130000
using CounterRecord = CUpti_ActivityUnifiedMemoryCounter3;
#else
using CounterRecord = CUpti_ActivityUnifiedMemoryCounter2;
#endif

/// The requests of this process. The card's mutex guards them.
struct Tracing {
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::set<CUpti_ActivityUnifiedMemoryCounterKind> kinds;
  bool is_enabled = false;
  emulated::MemoryCounts told;  // by the records so far
};

Tracing& tracing() {
  static Tracing only;
  return only;
}

std::vector<CounterRecord> new_records(Tracing& tracing, const emulated::MemoryCounts& now) {
  std::vector<CounterRecord> records;
  const auto add = [&](CUpti_ActivityUnifiedMemoryCounterKind kind, std::uint32_t cause,
                       std::uint64_t value) {
    if (value == 0 || !tracing.kinds.contains(kind)) return;
    CounterRecord record{};
    record.kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;
    record.counterKind = kind;
    record.flags = static_cast<decltype(record.flags)>(cause);
    record.value = value;
    records.push_back(record);
  };
  const emulated::MemoryCounts told = std::exchange(tracing.told, now);
  add(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_USER,
      now.prefetched_bytes - told.prefetched_bytes);
  add(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE,
      now.faulted_bytes - told.faulted_bytes);
  add(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_USER,
      now.offloaded_bytes - told.offloaded_bytes);
  add(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION,
      now.evicted_bytes - told.evicted_bytes);
  add(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT, 0,
      now.device_faults - told.device_faults);
  return records;
}

CUptiResult called(const char* name) {
  return emulated::begin_call(name) == cudaSuccess ? CUPTI_SUCCESS : CUPTI_ERROR_UNKNOWN;
}

}  // namespace

extern "C" {

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  const std::lock_guard lock{emulated::card().mutex};
  tracing() = {.request = request, .complete = complete, .kinds = {}, .told = {}};
  return called("cuptiActivityRegisterCallbacks");
}

CUptiResult cuptiActivityConfigureUnifiedMemoryCounter(
    CUpti_ActivityUnifiedMemoryCounterConfig* configurations, std::uint32_t count) {
  const std::lock_guard lock{emulated::card().mutex};
  for (std::uint32_t i = 0; i < count; ++i) {
    if (configurations[i].enable != 0) tracing().kinds.insert(configurations[i].kind);
  }
  return called("cuptiActivityConfigureUnifiedMemoryCounter");
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const std::lock_guard lock{emulated::card().mutex};
  if (kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) return CUPTI_ERROR_INVALID_KIND;
  tracing().is_enabled = true;
  tracing().told = emulated::card().memory.counts();
  return called("cuptiActivityEnable");
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  const std::lock_guard lock{emulated::card().mutex};
  if (kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) return CUPTI_ERROR_INVALID_KIND;
  tracing().is_enabled = false;
  return called("cuptiActivityDisable");
}

CUptiResult cuptiActivityFlushAll(std::uint32_t /*flag*/) {
  const std::lock_guard lock{emulated::card().mutex};
  if (const CUptiResult result = called("cuptiActivityFlushAll"); result != CUPTI_SUCCESS) {
    return result;
  }
  Tracing& own = tracing();
  if (!own.is_enabled) return CUPTI_SUCCESS;
  const std::vector<CounterRecord> records = new_records(own, emulated::card().memory.counts());
  if (records.empty()) return CUPTI_SUCCESS;
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0;
  std::size_t most = 0;
  own.request(&buffer, &size, &most);
  const std::size_t bytes = records.size() * sizeof(CounterRecord);
  if (buffer == nullptr || size < bytes) return CUPTI_ERROR_OUT_OF_MEMORY;
  std::memcpy(buffer, records.data(), bytes);
  own.complete(nullptr, 0, buffer, size, bytes);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                       CUpti_Activity** record) {
  auto* const next = *record == nullptr
                         ? buffer
                         : reinterpret_cast<std::uint8_t*>(*record) + sizeof(CounterRecord);
  if (next + sizeof(CounterRecord) > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext /*context*/, std::uint32_t /*stream*/,
                                              std::size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult /*result*/, const char** text) {
  *text = "CUPTI_ERROR of the emulated GPU";
  return CUPTI_SUCCESS;
}

}  // extern "C"
