#pragma once

#include <memory>

#include "src/plan/memory_mode.h"
#include "um/bytes.h"
#include "um/device.h"
#include "um/options.h"
#include "um/stream.h"

namespace spillway {

/// A piece of near memory that can be moved away and back to see how long that takes.
class LinkUnderTest {
 public:
  /// Whole pages of it.
  struct Part {
    um::Bytes offset;
    um::Bytes size;
  };

  virtual ~LinkUnderTest() = default;
  [[nodiscard]] virtual um::Bytes size() const = 0;
  /// Where what is away lies, by offset in it, as the processor there reaches it; null where none
  /// does.
  [[nodiscard]] virtual um::FarSide* far_side() { return nullptr; }

  /// Moves a part there and waits for that. Returns how long it took. Requires: all of the part is
  /// near, or all is away. Throws: um::Error when the move fails.
  um::Nanoseconds move_away(Part part);
  um::Nanoseconds move_back(Part part);
  /// Both ways at once.
  um::Nanoseconds exchange(Part away, Part back);

 private:
  virtual void start_away(Part part, um::Completion done) = 0;
  virtual void start_back(Part part, um::Completion done) = 0;
};

/// `size` bytes of the space that `mode` uses: unified memory, or an arena and explicit copies
/// (also where everything is resident). `options` gives page, far memory, link and paging. Throws:
/// um::Error when the device cannot make it.
[[nodiscard]] std::unique_ptr<LinkUnderTest> make_link_under_test(um::Device& device,
                                                                  MemoryMode mode,
                                                                  um::ManagedOptions options,
                                                                  um::Bytes size);

}  // namespace spillway
