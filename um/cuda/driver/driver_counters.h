#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "um/bytes.h"

namespace spillway::um {

/// What the driver did to unified memory, by cause. A steady step that a plan drives shows bytes by
/// the user alone, and no GPU fault.
struct DriverTotals {
  Bytes in_by_user;                 ///< to the device: our prefetches
  Bytes in_by_fault;                ///< a touch from the device
  Bytes in_by_driver;               ///< the driver's own guess
  Bytes out_by_user;                ///< to the host: our offloads
  Bytes out_by_fault;               ///< a touch from the host
  Bytes out_by_eviction;            ///< room was needed
  Bytes by_other_cause;             ///< in either direction
  std::uint64_t device_faults = 0;  ///< groups of faults of one page
  std::uint64_t host_faults = 0;
  std::uint64_t thrashes = 0;     ///< pages that two processors fought for
  std::uint64_t remote_maps = 0;  ///< pages that were mapped over the link, not moved
  std::uint64_t dropped = 0;      ///< records lost: the rest is too small
  friend bool operator==(const DriverTotals&, const DriverTotals&) = default;
};

/// One record of CUPTI's, by CUPTI's numbers.
struct DriverRecord {
  std::uint32_t counter;  ///< CUpti_ActivityUnifiedMemoryCounterKind
  std::uint32_t cause;    ///< CUpti_ActivityUnifiedMemoryMigrationCause, of a transfer
  std::uint64_t value;
};

/// `totals` with one more record.
[[nodiscard]] DriverTotals operator+(DriverTotals totals, const DriverRecord& record);

/// Makes the driver tell what it does to the unified memory of this process, through CUPTI, whose
/// library is loaded when the first is made. It costs time: never while something is timed. At most
/// one at a time.
class DriverCounters {
 public:
  virtual ~DriverCounters() = default;
  /// Everything since it was made. Waits for nothing on the device.
  [[nodiscard]] virtual DriverTotals read() = 0;
};

/// Why there can be no counters on this machine, as far as can be said without starting them.
[[nodiscard]] std::optional<std::string> why_no_driver_counters();

/// Starts counting on a device. Requires: the driver is initialised.
/// Throws: Error, one sentence that says why not.
[[nodiscard]] std::unique_ptr<DriverCounters> start_driver_counters(int ordinal);

}  // namespace spillway::um
