#include "um/cuda/copy_space.h"

#include <algorithm>
#include <utility>

#include "um/cuda/driver/api.h"
#include "um/cuda/driver/capabilities.h"
#include "um/error.h"

namespace spillway::um {
namespace {

// Copies of plain memory do not block their thread. A few queue on the copy engine, which then
// needs no help between them.
constexpr std::size_t kCopiesUnderWay = 8;

}  // namespace

CudaCopySpace::CudaCopySpace(CudaApi& api, Memory& device, Memory& pinned,
                             const CopyOptions& options)
    : api_{api},
      near_{device, checked(options).near},
      far_{pinned, options.size},
      far_side_{far_.bytes()},
      sliding_{api, "copy slide"},
      in_{api, {.name = "copy in", .streams = 1, .under_way = kCopiesUnderWay}},
      out_{api, {.name = "copy out", .streams = 1, .under_way = kCopiesUnderWay}} {}

Range CudaCopySpace::far(Bytes offset, std::span<const std::byte> near) const {
  expects(offset.count() + near.size() <= far_.size().count(), "a copy within far memory");
  expects(offset.count() % 4096 == 0 && near.size() % 4096 == 0, "a copy of whole 4096 bytes");
  return far_.bytes().subspan(offset.count(), near.size());
}

void CudaCopySpace::offload(std::span<const std::byte> near, Bytes far_offset, Completion done) {
  const Range to = far(far_offset, near);
  out_.enqueue([this, near, to](cudaStream_t stream) { api_.copy(near, to.data(), stream); },
               [this, size = near.size(), done = std::move(done)](std::exception_ptr failure) {
                 if (failure == nullptr) bytes_offloaded_ += size;
                 done(std::move(failure));
               });
}

void CudaCopySpace::prefetch(Bytes far_offset, Range near, Completion done) {
  const Range from = far(far_offset, near);
  in_.enqueue([this, near, from](cudaStream_t stream) { api_.copy(from, near.data(), stream); },
              [this, size = near.size(), done = std::move(done)](std::exception_ptr failure) {
                if (failure == nullptr) bytes_prefetched_ += size;
                done(std::move(failure));
              });
}

// Copies in pieces that do not overlap themselves: pieces as long as the distance, or through the
// spare memory.
void CudaCopySpace::slide(std::span<const std::byte> from, std::byte* to, Range spare) {
  const auto distance = static_cast<std::size_t>(from.data() - to);
  const bool jumps = distance >= std::min(spare.size(), from.size());
  const std::size_t max = jumps ? distance : spare.size();
  try {
    for (std::size_t at = 0; at < from.size(); at += max) {
      const std::span<const std::byte> piece = from.subspan(at, std::min(max, from.size() - at));
      if (jumps) {
        api_.copy(piece, to + at, sliding_.get());
      } else {
        api_.copy(piece, spare.data(), sliding_.get());
        api_.copy(spare.first(piece.size()), to + at, sliding_.get());
      }
    }
  } catch (...) {
    drain(api_, sliding_.get());  // the pieces before the failed one
    throw;
  }
  api_.synchronize(sliding_.get());
}

Counters CudaCopySpace::counters() const {
  Counters counters;
  counters.bytes_prefetched = Bytes{bytes_prefetched_};
  counters.bytes_offloaded = Bytes{bytes_offloaded_};
  return counters;
}

}  // namespace spillway::um
