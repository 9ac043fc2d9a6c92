#include "src/profile/far_update_rate.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <variant>

#include "src/execute/executor.h"
#include "src/execute/far_updates.h"
#include "src/ops/far_kernel.h"
#include "src/profile/measuring_time.h"
#include "um/options.h"

namespace spillway {
namespace {

using um::Bytes;
using Clock = std::chrono::steady_clock;

constexpr Bytes kUnit{4096};
constexpr auto kTime = std::chrono::milliseconds{250};  // of the measurement

std::optional<Operation> find_update(const Step& step) {
  for (const auto* const launches : {&step.launches, &step.far_launches}) {
    for (const Launch& launch : *launches) {
      if (is_update(launch.operation)) return launch.operation;
    }
  }
  return std::nullopt;
}

// Blocks of as many bytes as all of them have room for, one behind the other: parameters, the
// optimizer's numbers, the gradient.
FarOperands operands_in(Bytes block, std::size_t updated) {
  FarOperands operands{.updated = {}, .gradient = updated * block};
  for (std::size_t i = 0; i < updated; ++i) operands.updated.push_back(i * block);
  return operands;
}

}  // namespace

void measure_far_update(LinkUnderTest& link, const Step& step, const Backend& backend,
                        const StartLoad& start_load, const std::stop_token& stop,
                        prefetch::LinkProfile& result) {
  um::FarSide* const far = link.far_side();
  const std::optional<Operation> update = find_update(step);
  if (far == nullptr || !update || backend.far_update_support() == FarUpdateSupport::kNone) return;
  const std::size_t updated = std::visit([](const auto& op) { return write_count(op); }, *update);
  const Bytes block = um::round_down(Bytes{link.size().count() / (updated + 1)}, kUnit);
  if (block == Bytes{}) return;
  const FarOperands operands = operands_in(block, updated);
  const std::size_t count = block.count() / sizeof(float);
  const auto kernel = make_far_kernel(*update, {.begin = 0, .end = count}, count);
  const LinkUnderTest::Part whole{.offset = {}, .size = link.size()};
  link.move_away(whole);
  FarProcessor processor{*far};
  const StepContext context{.learning_rate = 0.001F};
  processor.run(*kernel, context, operands);
  const auto load = start_load();
  const auto measured_for = measuring_time(kTime);
  const Clock::time_point begin = Clock::now();
  Bytes bytes;
  do {
    if (stop.stop_requested()) throw Interrupted{};
    processor.run(*kernel, context, operands);
    bytes += (2 * updated + 1) * block;
  } while (Clock::now() - begin < measured_for);
  const um::Nanoseconds time = Clock::now() - begin;
  const auto speed = load ? load->stop() : std::nullopt;
  result.far_update = um::Bandwidth{static_cast<double>(bytes.count()) / um::seconds(time)};
  if (speed) result.compute_speed_while_updating = std::clamp(*speed, 0.05, 1.0);
  link.move_back(whole);
}

}  // namespace spillway
