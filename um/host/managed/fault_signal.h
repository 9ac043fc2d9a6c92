#pragma once

#include <cstddef>

#include "um/bytes.h"

namespace spillway::um {

/// Resolves the page faults of an address range.
class FaultTarget {
 public:
  virtual ~FaultTarget() = default;
  /// Called in the thread that touched `address`, from a signal handler. Must not touch managed
  /// memory, allocate, use stdio, or take a lock that is held across such a touch. Returns true to
  /// retry the access. Returns false when the program itself forbade the access; then the previous
  /// handler gets the signal.
  [[nodiscard]] virtual bool on_fault(const std::byte* address) noexcept = 0;
};

/// Sends SIGBUS and SIGSEGV in an address range to a target during its lifetime. The first
/// registration installs the handlers of both signals, the last one removes them. Faults at other
/// addresses and signals sent by a process go to the previous handlers.
///
/// Thread safety: any thread may make and destroy registrations. Requires: no thread touches the
/// range when its registration is destroyed.
class FaultRegistration {
 public:
  /// The target outlives the registration. Throws: Error when 64 ranges are registered already or a
  /// handler cannot be installed.
  FaultRegistration(Range range, FaultTarget& target);
  FaultRegistration(const FaultRegistration&) = delete;
  FaultRegistration& operator=(const FaultRegistration&) = delete;
  ~FaultRegistration();

 private:
  std::size_t entry_ = 0;
};

/// Gives the calling thread a separate stack for page-fault handlers until the thread ends. A
/// second call is a no-op. Without it, a handler runs on the stack of the faulting code, which may
/// not have one: oneDNN's AVX-512 kernels use the stack pointer for other data. A handler that
/// overflows this stack ends the process. Throws: Error when the system refuses the stack.
void make_fault_stack();

}  // namespace spillway::um
