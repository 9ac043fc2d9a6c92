#include "um/host/copy_space.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "um/error.h"
#include "um/host/far/far_store.h"
#include "um/machine/available_memory.h"
#include "um/machine/mapping.h"
#include "um/threads/back_off.h"

namespace spillway::um {

std::byte* HostMemory::allocate(Bytes size) {
  expects(size > Bytes{}, "an allocation has a size");
  expect_available(size, "take " + to_string(size) + " of near memory", "use a smaller budget");
  const Range memory = map_memory(size);
  try {
    touch_memory(memory);
  } catch (...) {
    unmap_memory(memory);
    throw;
  }
  return memory.data();
}

void HostMemory::free(std::byte* address, Bytes size) noexcept {
  unmap_memory({address, size.count()});
}

namespace {

constexpr Bytes kPiece = 2_MiB;

/// Moves `size` bytes by calling `move(offset, size)` for each piece. Starts no piece earlier than
/// a link that moves the last byte at `end`. This spreads the work of a slow copy over its time.
template <typename Move>
void move_in_pieces(std::size_t size, const Link& link, Link::Clock::time_point end,
                    const Move& move) {
  for (std::size_t moved = 0; moved < size;) {
    sleep_until(end - link.time_of(Bytes{size - moved}));
    const std::size_t piece = std::min<std::size_t>(kPiece.count(), size - moved);
    move(moved, piece);
    moved += piece;
  }
  sleep_until(end);
}

/// Runs `copy`, adds `size` to `counter` on success, and passes the outcome to `done`.
template <typename Copy>
void finish(const Copy& copy, std::size_t size, std::atomic<std::uint64_t>& counter,
            const Completion& done) {
  std::exception_ptr failure;
  try {
    copy();
    counter += size;
  } catch (...) {
    failure = std::current_exception();
  }
  done(failure);
}

}  // namespace

HostCopySpace::HostCopySpace(const CopyOptions& options)
    : near_{memory_, options.near},
      far_{make_far_store(options.far, options.size)},
      link_in_{options.link},
      link_out_{options.link},
      engine_in_{"copy in"},
      engine_out_{"copy out"} {}

// A copy reserves the link when it is issued, not when its engine starts it, so that queued copies
// follow each other without gaps.
void HostCopySpace::offload(std::span<const std::byte> near, Bytes far_offset, Completion done) {
  expect_far_access(far_->size(), far_offset, near);
  const auto end = link_out_.reserve(Bytes{near.size()});
  engine_out_.enqueue([this, near, far_offset, end, done = std::move(done)] {
    const auto write = [&](std::size_t at, std::size_t size) {
      far_->write(far_offset + Bytes{at}, near.subspan(at, size));
    };
    finish([&] { move_in_pieces(near.size(), link_out_, end, write); }, near.size(),
           bytes_offloaded_, done);
  });
}

void HostCopySpace::prefetch(Bytes far_offset, Range near, Completion done) {
  expect_far_access(far_->size(), far_offset, near);
  const auto end = link_in_.reserve(Bytes{near.size()});
  engine_in_.enqueue([this, near, far_offset, end, done = std::move(done)] {
    const auto read = [&](std::size_t at, std::size_t size) {
      far_->read(far_offset + Bytes{at}, near.subspan(at, size));
    };
    finish([&] { move_in_pieces(near.size(), link_in_, end, read); }, near.size(),
           bytes_prefetched_, done);
  });
}

Counters HostCopySpace::counters() const {
  Counters counters;
  counters.bytes_prefetched = Bytes{bytes_prefetched_};
  counters.bytes_offloaded = Bytes{bytes_offloaded_};
  return counters;
}

}  // namespace spillway::um
