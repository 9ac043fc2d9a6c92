#include "src/host/kernels/updates.h"

#include <algorithm>
#include <cmath>

#include "src/host/kernels/kernels.h"
#include "src/ops/update_element.h"

namespace spillway::host {

// Runs over the whole part: padding is zero in both and stays zero.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AccumulateGradients& op) {
  const std::size_t count = UpdateRange::of(machine.layout, op.parameters, op.part, false).count;
  return kernel_of(machine, op, [count](const auto& operands) {
    const float* const old_sum = floats(operands.in.sum);
    const float* const part = floats(operands.in.dparameters);
    float* const sum = floats(operands.out.sum);
#pragma omp parallel for simd schedule(static) if (parallel : count >= kWorthATeam)
    for (std::size_t i = 0; i < count; ++i) sum[i] = old_sum[i] + part[i];
  });
}

// Runs over the whole part: padding is zero in both and stays zero.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AverageParameters& op) {
  const UpdateRange range = UpdateRange::of(machine.layout, op.parameters, op.part, false);
  const auto part = static_cast<float>(1 - op.decay);
  const auto update = [range, part](const auto& operands, const auto& /*arguments*/) {
    const float* const w = floats(operands.in.parameters) + range.first;
    const float* const old_average = floats(operands.in.average);
    float* const average = floats(operands.out.average);
    const auto element = [=](std::size_t i) {
      average[i] = old_average[i] + part * (w[i] - old_average[i]);
    };
    update_all(element, range.count);
  };
  return kernel_of(machine, op, update);
}

// Runs over the whole part: padding in parameters, state and gradient stays zero, since 0 / epsilon
// is zero.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const UpdateParameters& op) {
  const UpdateRange range =
      UpdateRange::of(machine.layout, op.parameters, op.part, decays_all(op.options));
  return with_rule(op.options, [&](const auto& rule, auto states) {
    using Element = UpdateElement<decltype(rule.rates({})), decltype(states)::value>;
    const auto update = [range, rule, gradient = op.gradient_place()](const auto& operands,
                                                                      const auto& arguments) {
      Element element{.rates = rule.rates(*arguments.context),
                      .decayed = range.decayed,
                      .old_w = floats(operands.in.list[0]) + range.first,
                      .dw = floats(operands.in.list[gradient]) + range.gradient,
                      .w = floats(operands.out.list[0]) + range.written,
                      .state = {}};
      std::ranges::transform(operands.out.list.subspan(1), element.state.begin(), floats);
      update_all(element, range.count);
    };
    return kernel_of(machine, op, update);
  });
}

// Copies the whole part: both have the same padding.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const TakeParameters& op) {
  const UpdateRange range = UpdateRange::of(machine.layout, op.parameters, op.part, false);
  return kernel_of(machine, op, [range](const auto& operands) {
    const float* const taken = floats(operands.in.taken);
    float* const parameters = floats(operands.out.parameters) + range.first;
    update_all([=](std::size_t i) { parameters[i] = taken[i]; }, range.count);
  });
}

namespace {

// Squares are summed in chunks of this many floats, for any number of threads.
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

// Sums over the whole part: padding is zero.
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
