#pragma once

#include <cstdint>

#include "um/bytes.h"
#include "um/nanoseconds.h"

namespace spillway::um {

/// What a managed or copy space has done since it was made. Subtract two readings for a step's.
struct Counters {
  std::uint64_t faults = 0;     ///< page faults resolved
  std::uint64_t evictions = 0;  ///< pages pushed out because room was needed, not by a hint
  /// Pages that a prefetch or populate found no room for, or that an offload left out because a
  /// launch used them.
  std::uint64_t refused_hints = 0;
  std::uint64_t discarded_pages = 0;  ///< near pages dropped without write-back
  Bytes bytes_prefetched;             ///< far to near, by prefetch or by fault
  Bytes bytes_offloaded;              ///< near to far, by offload or by eviction
  Nanoseconds fault_time{0};          ///< time threads spent in page faults

  Counters& operator+=(const Counters& other) {
    faults += other.faults;
    evictions += other.evictions;
    refused_hints += other.refused_hints;
    discarded_pages += other.discarded_pages;
    bytes_prefetched += other.bytes_prefetched;
    bytes_offloaded += other.bytes_offloaded;
    fault_time += other.fault_time;
    return *this;
  }

  friend Counters operator-(Counters later, const Counters& earlier) {
    later.faults -= earlier.faults;
    later.evictions -= earlier.evictions;
    later.refused_hints -= earlier.refused_hints;
    later.discarded_pages -= earlier.discarded_pages;
    later.bytes_prefetched -= earlier.bytes_prefetched;
    later.bytes_offloaded -= earlier.bytes_offloaded;
    later.fault_time -= earlier.fault_time;
    return later;
  }
};

}  // namespace spillway::um
