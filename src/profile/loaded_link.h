#pragma once

#include <memory>

#include "src/plan/memory_mode.h"
#include "um/bandwidth.h"
#include "um/bytes.h"
#include "um/completion.h"
#include "um/device.h"
#include "um/nanoseconds.h"
#include "um/options.h"

namespace spillway {

/// A piece of near memory that can be moved away and back, whole, to see how long that takes.
class LinkUnderTest {
 public:
  virtual ~LinkUnderTest() = default;
  /// Moves it there, waits for that, and adds up. Throws: um::Error when a move fails.
  void move_away();
  void move_back();

  /// What was added up so far counts no longer.
  void forget();
  /// Requires: a move since the last forget().
  [[nodiscard]] um::Bandwidth away() const { return away_.bandwidth(); }
  [[nodiscard]] um::Bandwidth back() const { return back_.bandwidth(); }

 private:
  // Moves of one direction, added up.
  struct Moved {
    um::Bytes bytes;
    um::Nanoseconds time{0};
    [[nodiscard]] um::Bandwidth bandwidth() const;
  };

  template <class Start>
  void move(const Start& start, Moved& moved);

  virtual void start_away(um::Completion done) = 0;
  virtual void start_back(um::Completion done) = 0;
  [[nodiscard]] virtual um::Bytes size() const = 0;

  Moved away_;
  Moved back_;
};

/// `size` bytes of the space that `mode` uses: unified memory, or an arena and explicit copies
/// (also where everything is resident). `options` gives page, far memory, link and paging. Throws:
/// um::Error when the device cannot make it.
[[nodiscard]] std::unique_ptr<LinkUnderTest> make_link_under_test(um::Device& device,
                                                                  MemoryMode mode,
                                                                  um::ManagedOptions options,
                                                                  um::Bytes size);

}  // namespace spillway
