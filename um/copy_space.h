#pragma once

#include <string>

#include "um/bytes.h"
#include "um/copies.h"
#include "um/counters.h"
#include "um/far_options.h"
#include "um/link_options.h"
#include "um/range.h"

namespace spillway::um {

/// What a copy space is made of.
struct CopyOptions {
  Bytes size;  ///< bytes of far memory
  Bytes near;  ///< bytes of near memory
  FarOptions far;
  LinkOptions link;
};

/// Near memory and a far store beside it, moved by explicit copies.
class CopySpace {
 public:
  virtual ~CopySpace() = default;
  /// The near memory, page-aligned and always mapped.
  [[nodiscard]] virtual Range near() = 0;
  [[nodiscard]] virtual Copies& copies() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  /// For the run's summary: "far file in /scratch, direct I/O".
  [[nodiscard]] virtual std::string description() const = 0;
};

}  // namespace spillway::um
