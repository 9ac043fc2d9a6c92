#pragma once

#include <memory>
#include <string>
#include <vector>

#include "um/bytes.h"
#include "um/device_spaces.h"
#include "um/faults.h"
#include "um/ledger.h"
#include "um/memory.h"
#include "um/options.h"
#include "um/stream.h"

namespace spillway::um {

/// One thing a device can or cannot do, for `spillway devices`.
struct Capability {
  std::string name;  ///< "uffd_move"
  bool available;
  std::string comment;  ///< what it gives, or why it is not there
};

/// A processor with its near and far memory. Makes everything that depends on the hardware.
class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::vector<Capability> capabilities() const = 0;
  /// Near bytes a run could use now, before any budget.
  [[nodiscard]] virtual Bytes available_memory() const = 0;

  /// How it serves page faults that nobody hints to; what one takes is about right.
  [[nodiscard]] virtual Faults faults() const = 0;

  /// Whether unified memory that no hint moves keeps to the near memory of its space, by evicting.
  [[nodiscard]] virtual bool evicts() const = 0;

  /// To be called by each thread that runs kernels on managed memory, before it does.
  virtual void prepare_kernel_thread() = 0;
  [[nodiscard]] virtual std::unique_ptr<Stream> make_stream(const std::string& name) = 0;
  /// A stream for copies of plain memory: nothing it is given waits for unified memory.
  [[nodiscard]] virtual std::unique_ptr<Stream> make_copy_stream(const std::string& name) {
    return make_stream(name);
  }
  /// Plain near memory, never moved.
  [[nodiscard]] virtual Memory& memory() = 0;
  /// The space charges `ledger` for each near page while it is in use. The ledger outlives it.
  /// Throws: Error when the far file, the paging mechanism or the memory cannot be had.
  [[nodiscard]] virtual std::unique_ptr<ManagedSpace> make_managed_space(
      const ManagedOptions& options, Ledger& ledger) = 0;
  /// The space does not charge a ledger: the arena that divides its near memory does.
  [[nodiscard]] virtual std::unique_ptr<CopySpace> make_copy_space(const CopyOptions& options) = 0;
};

}  // namespace spillway::um
