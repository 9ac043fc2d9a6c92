#pragma once

#include <string>

namespace spillway::prefetch {

/// Why a plan must not run, as a sentence.
struct Violation {
  std::string reason;
};

}  // namespace spillway::prefetch
