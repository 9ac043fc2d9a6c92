#pragma once

#include <cstddef>

#include "um/bytes.h"

namespace spillway::um {

/// Who resolves the page faults of a range of addresses.
class FaultTarget {
 public:
  virtual ~FaultTarget() = default;
  /// Called in the thread that touched `address`, from a signal handler: must not touch managed
  /// memory, allocate, use stdio, or take a lock that is held across such a touch. When it returns
  /// true, the thread touches the address again. False: the fault is the program's, which forbade
  /// the touch itself, and its signal goes on to the handler before ours.
  [[nodiscard]] virtual bool on_fault(const std::byte* address) noexcept = 0;
};

/// Sends the SIGBUS and SIGSEGV of a range of addresses to a target while it lives. The handlers of
/// both signals are put in place with the first registration and taken back with the last; faults
/// at other addresses, and signals that a process sent, go on to the handlers that were there
/// before.
///
/// Thread safety: registrations may be made and ended by any thread. Ending one requires that no
/// thread touches its range any more.
class FaultRegistration {
 public:
  /// Throws: Error when 64 ranges are registered already, or the system lets no handler in. The
  /// target outlives the registration.
  FaultRegistration(Range range, FaultTarget& target);
  FaultRegistration(const FaultRegistration&) = delete;
  FaultRegistration& operator=(const FaultRegistration&) = delete;
  ~FaultRegistration();

 private:
  std::size_t entry_ = 0;
};

/// Gives the calling thread a stack of its own for page-fault handlers, until it ends; a second
/// call does nothing. Without it a handler runs on the stack of the code that touched, and some
/// code has none to spare: oneDNN's AVX-512 kernels use the stack pointer for other things.
/// A handler that needs more than it holds ends the process. Throws: Error when the system gives no
/// such stack.
void make_fault_stack();

}  // namespace spillway::um
