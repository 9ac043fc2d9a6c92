#pragma once

#include <sys/ioctl.h>

#include <functional>

#include "um/nanoseconds.h"
#include "um/threads/sleep_until.h"

namespace spillway::um {

/// The system as UffdMove calls it, so that a test may refuse what the kernel rarely does. Called
/// from page-fault handlers.
struct UffdCalls {
  /// As ioctl(2): -1 and errno when the kernel refuses.
  std::function<int(int descriptor, unsigned long request, void* argument)> ioctl =
      [](int descriptor, unsigned long request, void* argument) {
        return ::ioctl(descriptor, request, argument);
      };
  std::function<void(Nanoseconds)> pause = [](Nanoseconds time) { sleep_for(time); };
};

}  // namespace spillway::um
