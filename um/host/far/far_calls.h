#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <functional>

#include "um/nanoseconds.h"
#include "um/threads/sleep_until.h"

namespace spillway::um {

/// The system as a FarFile calls it, so that a test may let it fail. Called from page-fault
/// handlers.
struct FarCalls {
  /// As pread(2) and pwrite(2): -1 and errno when the system refuses.
  std::function<ssize_t(int descriptor, void* to, std::size_t size, off_t at)> pread = ::pread;
  std::function<ssize_t(int descriptor, const void* from, std::size_t size, off_t at)> pwrite =
      ::pwrite;
  std::function<void(Nanoseconds)> pause = [](Nanoseconds time) { sleep_for(time); };
};

}  // namespace spillway::um
