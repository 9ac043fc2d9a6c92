#pragma once

#include <memory>

#include "src/plan/plans.h"
#include "um/bytes.h"
#include "um/device.h"
#include "um/options.h"
#include "um/stream.h"

namespace spillway {

/// A piece of near memory that can be moved away and back to see how long that takes.
class LinkUnderTest {
 public:
  /// Whole pages of the piece.
  struct Part {
    um::Bytes offset;
    um::Bytes size;
  };

  virtual ~LinkUnderTest() = default;
  [[nodiscard]] virtual um::Bytes size() const = 0;
  /// Returns far memory as its processor reaches it, by offset; null if no processor does.
  [[nodiscard]] virtual um::FarSide* far_side() { return nullptr; }

  /// Moves a part away, waits, and returns how long it took. Requires: the whole part is near
  /// (move_away()) or away (move_back()). Throws: um::Error when the move fails.
  um::Nanoseconds move_away(Part part);
  um::Nanoseconds move_back(Part part);
  /// Moves two parts at once, one each way.
  um::Nanoseconds exchange(Part away, Part back);

 private:
  virtual void start_away(Part part, um::Completion done) = 0;
  virtual void start_back(Part part, um::Completion done) = 0;
};

/// Makes `size` bytes of the kind of space that `mode` uses: unified memory, or an arena with
/// explicit copies (also for resident). `options` gives page, far memory, link and paging. Throws:
/// um::Error when the device cannot make it.
[[nodiscard]] std::unique_ptr<LinkUnderTest> make_link_under_test(um::Device& device,
                                                                  MemoryMode mode,
                                                                  um::ManagedOptions options,
                                                                  um::Bytes size);

}  // namespace spillway
