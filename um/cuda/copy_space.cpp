#include "um/cuda/copy_space.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "um/cuda/driver/api.h"
#include "um/error.h"

namespace spillway::um {
namespace {

// Copies of plain memory do not block their thread. A few queue on the copy engine, which then
// needs no help between them.
constexpr std::size_t kCopiesUnderWay = 8;

// Calls `move` and tells `done` how it ended. The stream has no work afterwards.
template <class Move>
void finish(CudaApi& api, const StreamHandle& stream, const Move& move, const Completion& done) {
  std::exception_ptr failure;
  try {
    move();
  } catch (...) {
    failure = std::current_exception();
    drain(api, stream.get());  // the pieces before the failed one
  }
  done(std::move(failure));
}

}  // namespace

CudaCopyArena::CudaCopyArena(CudaApi& api, Memory& device, Bytes size)
    : api_{api}, near_{device, size}, sliding_{api, "copy slide"} {}

// Copies in pieces that do not overlap themselves: pieces as long as the distance, or through the
// spare memory.
void CudaCopyArena::slide(std::span<const std::byte> from, std::byte* to, Range spare) {
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

Counters CudaCopyArena::counters() const {
  Counters counters;
  counters.bytes_prefetched = Bytes{bytes_prefetched_};
  counters.bytes_offloaded = Bytes{bytes_offloaded_};
  return counters;
}

CudaCopySpace::CudaCopySpace(CudaApi& api, Memory& device, Memory& pinned,
                             const CopyOptions& options)
    : CudaCopyArena{api, device, options.near},
      far_{pinned, options.size},
      far_side_{far_.bytes()},
      in_{api, {.name = "copy in", .streams = 1, .under_way = kCopiesUnderWay}},
      out_{api, {.name = "copy out", .streams = 1, .under_way = kCopiesUnderWay}} {}

Range CudaCopySpace::far(Bytes offset, std::span<const std::byte> near) const {
  expects(offset.count() + near.size() <= far_.size().count(), "a copy within far memory");
  expects(offset.count() % 4096 == 0 && near.size() % 4096 == 0, "a copy of whole 4096 bytes");
  return far_.bytes().subspan(offset.count(), near.size());
}

void CudaCopySpace::offload(std::span<const std::byte> near, Bytes far_offset, Completion done) {
  const Range to = far(far_offset, near);
  out_.enqueue([this, near, to](cudaStream_t stream) { api().copy(near, to.data(), stream); },
               [this, size = near.size(), done = std::move(done)](std::exception_ptr failure) {
                 if (failure == nullptr) note_copied(Bytes{size}, Bytes{});
                 done(std::move(failure));
               });
}

void CudaCopySpace::prefetch(Bytes far_offset, Range near, Completion done) {
  const Range from = far(far_offset, near);
  in_.enqueue([this, near, from](cudaStream_t stream) { api().copy(from, near.data(), stream); },
              [this, size = near.size(), done = std::move(done)](std::exception_ptr failure) {
                if (failure == nullptr) note_copied(Bytes{}, Bytes{size});
                done(std::move(failure));
              });
}

CudaFileSpace::Lane::Lane(CudaApi& api, Memory& pinned, const std::string& name)
    : pieces{Block{pinned, kPiece}, Block{pinned, kPiece}}, stream{api, name} {}

CudaFileSpace::CudaFileSpace(CudaApi& api, Memory& device, Memory& pinned,
                             const CopyOptions& options)
    : CudaCopyArena{api, device, options.near},
      far_{make_far_store(options.far, options.size)},
      in_{api, pinned, "file in"},
      out_{api, pinned, "file out"},
      engine_in_{"file in"},
      engine_out_{"file out"} {
  for (Engine* const own : {&engine_in_, &engine_out_}) {
    own->enqueue([&api] { api.enter_thread(); });
  }
}

void CudaFileSpace::offload(std::span<const std::byte> near, Bytes far_offset, Completion done) {
  expect_far_access(far_->size(), far_offset, near);
  engine_out_.enqueue([this, near, far_offset, done = std::move(done)] {
    finish(
        api(), out_.stream, [&] { write(near, far_offset); }, done);
  });
}

void CudaFileSpace::prefetch(Bytes far_offset, Range near, Completion done) {
  expect_far_access(far_->size(), far_offset, near);
  engine_in_.enqueue([this, near, far_offset, done = std::move(done)] {
    finish(
        api(), in_.stream, [&] { read(far_offset, near); }, done);
  });
}

// While the file takes one piece, the GPU copies the next one.
void CudaFileSpace::write(std::span<const std::byte> near, Bytes far_offset) {
  const auto piece_at = [&](std::size_t at) {
    return near.subspan(at, std::min<std::size_t>(kPiece.count(), near.size() - at));
  };
  const auto copy = [&](std::size_t at, std::size_t turn) {
    if (at < near.size()) {
      api().copy(piece_at(at), out_.pieces.at(turn).bytes().data(), out_.stream.get());
    }
  };
  std::size_t turn = 0;
  copy(0, turn);
  for (std::size_t at = 0; at < near.size(); at += kPiece.count()) {
    api().synchronize(out_.stream.get());
    copy(at + kPiece.count(), 1 - turn);
    far_->write(far_offset + Bytes{at}, out_.pieces.at(turn).bytes().first(piece_at(at).size()));
    turn = 1 - turn;
  }
  note_copied(Bytes{near.size()}, Bytes{});
}

// While the GPU copies one piece, the next one is read.
void CudaFileSpace::read(Bytes far_offset, Range near) {
  std::size_t turn = 0;
  for (std::size_t at = 0; at < near.size(); at += kPiece.count()) {
    const std::size_t size = std::min<std::size_t>(kPiece.count(), near.size() - at);
    const Range piece = in_.pieces.at(turn).bytes().first(size);
    far_->read(far_offset + Bytes{at}, piece);
    api().synchronize(in_.stream.get());
    api().copy(piece, near.data() + at, in_.stream.get());
    turn = 1 - turn;
  }
  api().synchronize(in_.stream.get());
  note_copied(Bytes{}, Bytes{near.size()});
}

}  // namespace spillway::um
