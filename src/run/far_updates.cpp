#include "src/run/far_updates.h"

#include <algorithm>
#include <cstdint>

#include "um/error.h"

namespace spillway {
namespace {

using um::Bytes;

constexpr Bytes kFarAlignment{4096};
constexpr std::size_t kPiece = 1U << 16U;  // floats: four buffers of 256 KiB

Bytes bytes_of(std::size_t floats) { return Bytes{floats * sizeof(float)}; }

// The whole 4 KiB that hold floats in far memory.
struct Window {
  Bytes begin;
  Bytes end;

  static Window around(Bytes offset, std::size_t floats) {
    return {.begin = um::round_down(offset, kFarAlignment),
            .end = um::round_up(offset + bytes_of(floats), kFarAlignment)};
  }
  [[nodiscard]] Bytes size() const { return end - begin; }
};

um::Range aligned(std::vector<std::byte>& buffer, Bytes size) {
  buffer.resize(std::max<std::size_t>(buffer.size(), (size + kFarAlignment).count()));
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
  const std::uintptr_t skipped =
      (kFarAlignment.count() - address % kFarAlignment.count()) % kFarAlignment.count();
  return um::Range{buffer}.subspan(skipped, size.count());
}

float* floats_at(std::byte* address) { return reinterpret_cast<float*>(address); }

// Where the floats of `piece` begin: parameters are a whole block, all else is of the part alone.
std::vector<Bytes> begins_of(const FarOperands& operands, const FloatRange& part,
                             std::size_t piece) {
  std::vector<Bytes> begins;
  for (std::size_t i = 0; i < operands.updated.size(); ++i) {
    begins.push_back(operands.updated[i] + bytes_of(piece + (i == 0 ? part.begin : 0)));
  }
  return begins;
}

}  // namespace

void FarProcessor::run(FarKernel& kernel, const StepContext& context, const FarOperands& operands) {
  if (run_in_place(kernel, context, operands)) return;
  const std::size_t count = kernel.range().count();
  for (std::size_t begin = 0; begin < count; begin += kPiece) {
    run_piece(kernel, context, operands, {.begin = begin, .end = std::min(begin + kPiece, count)});
  }
}

bool FarProcessor::run_in_place(FarKernel& kernel, const StepContext& context,
                                const FarOperands& operands) {
  const FloatRange part = kernel.range();
  const Bytes size = bytes_of(part.count());
  std::vector<float*> updated;
  for (const Bytes begin : begins_of(operands, part, 0)) {
    const um::Range range = far_.addresses(begin, size);
    if (range.empty()) return false;
    updated.push_back(floats_at(range.data()));
  }
  const um::Range gradient = far_.addresses(operands.gradient, size);
  if (gradient.empty()) return false;
  kernel.run(context, {.begin = 0, .end = part.count()}, updated, floats_at(gradient.data()));
  return true;
}

void FarProcessor::run_piece(FarKernel& kernel, const StepContext& context,
                             const FarOperands& operands, const FloatRange& piece) {
  std::vector<Bytes> begins = begins_of(operands, kernel.range(), piece.begin);
  begins.push_back(operands.gradient + bytes_of(piece.begin));
  buffers_.resize(std::max(buffers_.size(), begins.size()));
  std::vector<um::Range> near;
  std::vector<float*> floats;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const Window window = Window::around(begins[i], piece.count());
    near.push_back(aligned(buffers_[i], window.size()));
    far_.read(window.begin, near[i]);
    floats.push_back(floats_at(near[i].data() + (begins[i] - window.begin).count()));
  }
  const std::span<float* const> updated{floats.data(), operands.updated.size()};
  kernel.run(context, piece, updated, floats.back());
  for (std::size_t i = 0; i < operands.updated.size(); ++i) {
    far_.write(Window::around(begins[i], piece.count()).begin, near[i]);
  }
}

FarUpdates::FarUpdates(const Step& step, const Backend& backend, prefetch::StepMemory& memory) {
  if (step.far_launches.empty()) return;
  um::FarSide* const far = memory.far_side();
  for (std::size_t u = 0; far != nullptr && u < step.far_launches.size(); ++u) {
    kernels_.push_back(
        backend.prepare_far(std::get<UpdateParameters>(step.far_launches[u].operation)));
    if (kernels_.back() == nullptr) break;
    const prefetch::FarUpdate& update = step.graph.far_updates[u];
    FarOperands operands{.updated = {memory.far_offset(update.parameters)},
                         .gradient = memory.far_offset(update.gradient)};
    for (const prefetch::DataId id : update.numbers) {
      operands.updated.push_back(memory.far_offset(id));
    }
    operands_.push_back(std::move(operands));
  }
  if (operands_.size() < step.far_launches.size()) {
    throw um::Error{
        "this device does not update on the far side in this memory mode; leave out --update far, "
        "or take a plan that updates near"};
  }
  processor_ = std::make_unique<FarProcessor>(*far);
}

void FarUpdates::run(std::uint32_t update, const StepContext& context) {
  processor_->run(*kernels_[update], context, operands_[update]);
}

}  // namespace spillway
