#include <algorithm>
#include <cmath>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/updates/update_range.h"

namespace spillway::host {
namespace {

// Squares are summed in chunks of so many floats, whatever the number of threads.
constexpr std::size_t kChunk = 1U << 16U;

std::size_t chunks_of(std::size_t count) { return (count + kChunk - 1) / kChunk; }

std::size_t count_of(const Machine& machine, const AddSquares& op) {
  return UpdateRange::of(machine.layout, op.parameters, op.part, false).count;
}

double squares_of(const float* numbers, std::size_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < count; ++i) {
    sum += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
  }
  return sum;
}

}  // namespace

// Over the whole part: padding is zero.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddSquares& op) {
  const std::size_t count = count_of(machine, op);
  return kernel_of(machine, op, [count, op](const auto& operands, const auto& arguments) {
    const float* const gradient = floats(operands.in.dparameters);
    auto* const sums = reinterpret_cast<double*>(arguments.workspace);
#pragma omp parallel for schedule(static) if (count >= kWorthATeam)
    for (std::size_t chunk = 0; chunk < chunks_of(count); ++chunk) {
      const std::size_t begin = chunk * kChunk;
      sums[chunk] = squares_of(gradient + begin, std::min(kChunk, count - begin));
    }
    auto* const squares = reinterpret_cast<double*>(operands.out.squares);
    double total = op.accumulates ? *squares : 0;
    for (std::size_t chunk = 0; chunk < chunks_of(count); ++chunk) total += sums[chunk];
    *squares = total;
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ClipGradient& op) {
  constexpr double kEpsilon = 1e-6;
  const std::size_t count = UpdateRange::of(machine.layout, op.parameters, op.part, false).count;
  return kernel_of(machine, op, [count, op](const auto& operands) {
    const double norm = std::sqrt(*reinterpret_cast<const double*>(operands.in.squares));
    const double ratio = static_cast<double>(op.largest_norm) / (norm + kEpsilon);
    const auto scale = static_cast<float>(std::min(ratio, 1.0));  // a NaN stays and shows
    const float* const from = floats(operands.in.dparameters);
    float* const to = floats(operands.out.dparameters);
#pragma omp parallel for simd schedule(static) if (parallel : count >= kWorthATeam)
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i] * scale;
  });
}

um::Bytes workspace_of(const Machine& machine, const AddSquares& op) {
  return um::Bytes{chunks_of(count_of(machine, op)) * sizeof(double)};
}

}  // namespace spillway::host
