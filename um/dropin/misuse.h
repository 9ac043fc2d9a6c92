#pragma once

#include "um/error.h"

namespace spillway::um {

/// The user of a drop-in allocator asked for what makes no sense. `what()` is one clear sentence.
class Misuse : public Error {
 public:
  using Error::Error;
};

/// An address that no live allocation has, or a range that leaves its allocation.
class NotAllocated final : public Misuse {
 public:
  using Misuse::Misuse;
};

}  // namespace spillway::um
