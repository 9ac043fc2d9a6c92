#include "src/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "um/cuda/check.h"
#include "um/error.h"

namespace spillway::cuda {
namespace {

// The device copies one piece while the CPU stages the next.
constexpr std::size_t kPiece = 4U << 20U;

std::byte* pinned(um::Bytes size) {
  void* memory = nullptr;
  um::check(cudaMallocHost(&memory, std::max<std::size_t>(size.count(), 1)));
  return static_cast<std::byte*>(memory);
}

cudaEvent_t event() {
  cudaEvent_t event = nullptr;
  um::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

}  // namespace

void Staging::FreePinned::operator()(std::byte* memory) const noexcept {
  (void)cudaFreeHost(memory);
}
void Staging::DestroyEvent::operator()(cudaEvent_t event) const noexcept {
  (void)cudaEventDestroy(event);
}

Staging::Staging(um::Bytes size) : memory_{pinned(size)}, size_{size}, copied_{event()} {}

Staging::~Staging() { (void)cudaEventSynchronize(copied_.get()); }

void Staging::reclaim() {
  um::check(cudaEventSynchronize(copied_.get()));  // at once where nothing was recorded
  used_ = {};
}

void Staging::append(std::span<const std::byte> source, std::byte* device, cudaStream_t stream) {
  um::expects(used_ + um::Bytes{source.size()} <= size_, "the staging memory has room");
  while (!source.empty()) {
    const std::size_t piece = std::min(source.size(), kPiece);
    std::byte* const staged = memory_.get() + used_.count();
    std::memcpy(staged, source.data(), piece);
    um::check(cudaMemcpyAsync(device, staged, piece, cudaMemcpyHostToDevice, stream));
    used_ += um::Bytes{piece};
    device += piece;
    source = source.subspan(piece);
  }
}

void Staging::finish(cudaStream_t stream) { um::check(cudaEventRecord(copied_.get(), stream)); }

}  // namespace spillway::cuda
