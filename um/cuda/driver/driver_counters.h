#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "um/bytes.h"

namespace spillway::um {

/// The driver's actions on unified memory, by cause. A steady step driven by a plan shows bytes
/// caused by the user only, and no GPU faults.
struct DriverTotals {
  Bytes in_by_user;                 ///< to the device: prefetches by Spillway
  Bytes in_by_fault;                ///< to the device: touched there
  Bytes in_by_driver;               ///< to the device: predicted by the driver
  Bytes out_by_user;                ///< to the host: offloads by Spillway
  Bytes out_by_fault;               ///< to the host: touched there
  Bytes out_by_eviction;            ///< to the host: for lack of room
  Bytes by_other_cause;             ///< in either direction
  std::uint64_t device_faults = 0;  ///< groups of faults on one page
  std::uint64_t host_faults = 0;
  std::uint64_t thrashes = 0;     ///< pages that two processors kept moving
  std::uint64_t remote_maps = 0;  ///< pages mapped over the link instead of moved
  std::uint64_t dropped = 0;      ///< lost records: the other numbers are too small
  friend bool operator==(const DriverTotals&, const DriverTotals&) = default;
};

/// One CUPTI record with CUPTI's numbers.
struct DriverRecord {
  std::uint32_t counter;  ///< CUpti_ActivityUnifiedMemoryCounterKind
  std::uint32_t cause;    ///< CUpti_ActivityUnifiedMemoryMigrationCause of a transfer
  std::uint64_t value;
};

/// Returns `totals` with one more record added.
[[nodiscard]] DriverTotals operator+(DriverTotals totals, const DriverRecord& record);

/// Counts the driver's actions on this process's unified memory through CUPTI. The first object
/// loads the CUPTI library. Counting costs time, so do not use it while measuring. At most one
/// object may exist.
class DriverCounters {
 public:
  virtual ~DriverCounters() = default;
  /// Returns all counts since construction, without waiting for the device.
  [[nodiscard]] virtual DriverTotals read() = 0;
};

/// Returns why counters are unavailable on this machine, as far as is known without starting them.
[[nodiscard]] std::optional<std::string> why_no_driver_counters();

/// Starts counting on a device. Requires: the driver is initialised. Throws: Error that says why
/// counting is impossible.
[[nodiscard]] std::unique_ptr<DriverCounters> start_driver_counters(int ordinal);

}  // namespace spillway::um
