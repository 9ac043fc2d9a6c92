#include "um/cuda/driver/driver_counters.h"

#include <cupti.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "um/error.h"

namespace spillway::um {
namespace {

#if CUPTI_API_VERSION >= 130000
using CuptiRecord = CUpti_ActivityUnifiedMemoryCounter3;
#else
using CuptiRecord = CUpti_ActivityUnifiedMemoryCounter2;  // the same up to its last member
#endif

/// The used CUPTI functions, loaded on demand.
struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityConfigureUnifiedMemoryCounter) configure = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

/// Keeps the library loaded, since CUPTI runs threads.
std::optional<Cupti> load_cupti() {
  void* library = nullptr;
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) return std::nullopt;
  Cupti cupti;
  const bool has_all =
      find(library, "cuptiActivityRegisterCallbacks", cupti.register_callbacks) &&
      find(library, "cuptiActivityConfigureUnifiedMemoryCounter", cupti.configure) &&
      find(library, "cuptiActivityEnable", cupti.enable) &&
      find(library, "cuptiActivityDisable", cupti.disable) &&
      find(library, "cuptiActivityFlushAll", cupti.flush) &&
      find(library, "cuptiActivityGetNextRecord", cupti.next_record) &&
      find(library, "cuptiActivityGetNumDroppedRecords", cupti.dropped_records) &&
      find(library, "cuptiGetResultString", cupti.result_string);
  return has_all ? std::optional{cupti} : std::nullopt;
}

/// The state of CUPTI's callbacks, which receive no user data.
struct Sink {
  std::mutex mutex;
  Cupti cupti;
  DriverTotals totals;
};

Sink& sink() {
  static Sink only;
  return only;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  constexpr std::size_t kSize = 8U << 20U;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kSize));
  *size = *buffer == nullptr ? 0 : kSize;
  *max_records = 0;
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t /*size*/, std::size_t valid) {
  const std::lock_guard lock{sink().mutex};
  const Cupti& cupti = sink().cupti;
  CUpti_Activity* activity = nullptr;
  while (cupti.next_record(buffer, valid, &activity) == CUPTI_SUCCESS) {
    if (activity->kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) continue;
    const auto* record = reinterpret_cast<const CuptiRecord*>(activity);
    sink().totals = sink().totals + DriverRecord{.counter = record->counterKind,
                                                 .cause = record->flags,
                                                 .value = record->value};
  }
  std::size_t dropped = 0;
  if (cupti.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) {
    sink().totals.dropped += dropped;
  }
  std::free(buffer);
}

std::array<CUpti_ActivityUnifiedMemoryCounterConfig, 6> configuration(int ordinal) {
  constexpr std::array kKinds{CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
                              CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
                              CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT,
                              CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT,
                              CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING,
                              CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP};
  std::array<CUpti_ActivityUnifiedMemoryCounterConfig, 6> all{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE,
              .kind = kKinds[i],
              .deviceId = static_cast<std::uint32_t>(ordinal),
              .enable = 1};
  }
  return all;
}

class CuptiCounters final : public DriverCounters {
 public:
  CuptiCounters(const Cupti& cupti, int ordinal) : cupti_{cupti} {
    {
      const std::lock_guard lock{sink().mutex};
      sink().cupti = cupti;
      sink().totals = {};
    }
    expect(cupti_.register_callbacks(give_buffer, take_buffer));
    auto all = configuration(ordinal);
    expect(cupti_.configure(all.data(), all.size()));
    expect(cupti_.enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
  }
  CuptiCounters(const CuptiCounters&) = delete;
  CuptiCounters& operator=(const CuptiCounters&) = delete;
  ~CuptiCounters() override {
    cupti_.disable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
    cupti_.flush(1);
  }

  [[nodiscard]] DriverTotals read() override {
    expect(cupti_.flush(1));
    const std::lock_guard lock{sink().mutex};
    return sink().totals;
  }

 private:
  void expect(CUptiResult result) const {
    if (result == CUPTI_SUCCESS) return;
    const char* text = nullptr;
    cupti_.result_string(result, &text);
    throw Error{std::string{"the driver does not tell what it does to unified memory ("} +
                (text == nullptr ? "CUPTI" : text) + "); leave the counters out"};
  }

  Cupti cupti_;
};

Bytes& transfer_in(DriverTotals& totals, std::uint32_t cause) {
  switch (cause) {
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_USER:
      return totals.in_by_user;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE:
      return totals.in_by_fault;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_PREFETCH:
      return totals.in_by_driver;
    default:
      return totals.by_other_cause;
  }
}

Bytes& transfer_out(DriverTotals& totals, std::uint32_t cause) {
  switch (cause) {
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_USER:
      return totals.out_by_user;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE:
      return totals.out_by_fault;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION:
      return totals.out_by_eviction;
    default:
      return totals.by_other_cause;
  }
}

}  // namespace

DriverTotals operator+(DriverTotals totals, const DriverRecord& record) {
  switch (record.counter) {
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD:
      transfer_in(totals, record.cause) += Bytes{record.value};
      break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH:
      transfer_out(totals, record.cause) += Bytes{record.value};
      break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT:
      totals.device_faults += record.value;
      break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT:
      ++totals.host_faults;  // the value is the program counter
      break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING:
      ++totals.thrashes;
      break;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP:
      ++totals.remote_maps;
      break;
    default:
      break;
  }
  return totals;
}

std::optional<std::string> why_no_driver_counters() {
  if (load_cupti()) return std::nullopt;
  return "libcupti was not found; install CUPTI, or add its folder to LD_LIBRARY_PATH";
}

std::unique_ptr<DriverCounters> start_driver_counters(int ordinal) {
  const std::optional<Cupti> cupti = load_cupti();
  if (!cupti) throw Error{"page faults cannot be counted: " + *why_no_driver_counters()};
  return std::make_unique<CuptiCounters>(*cupti, ordinal);
}

}  // namespace spillway::um
