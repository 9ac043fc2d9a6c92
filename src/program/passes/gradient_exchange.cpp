#include "prefetch/gradient_exchange.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/update_order.h"
#include "src/program/passes.h"
#include "src/ranks/communicator.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::Task;

// An update of a large part of parameters.
struct LargeUpdate {
  std::string task;
  DataId parameters{};
  DataId gradient{};
  std::vector<DataId> own;  // what the optimizer keeps
  std::size_t floats = 0;   // of the gradient
};

bool has(const std::vector<DataId>& ids, DataId id) {
  return std::ranges::find(ids, id) != ids.end();
}

// By block.
std::vector<bool> are_parameters(const Step& step) {
  std::vector<bool> are(step.graph.data.size());
  for (const StateBlock& block : step.state) {
    if (block.role != StateRole::kParameters) continue;
    for (const DataId id : block.ids) are[static_cast<std::size_t>(id)] = true;
  }
  return are;
}

std::vector<LargeUpdate> find_large_updates(const Step& step) {
  const std::vector<bool> is_of_parameters = are_parameters(step);
  std::vector<LargeUpdate> found;
  for (std::size_t t = 0; t < step.launches.size(); ++t) {
    if (!std::holds_alternative<UpdateParameters>(step.launches[t].operation)) continue;
    const Task& task = step.graph.tasks[t];
    LargeUpdate update{.task = task.name};
    for (const DataId id : task.writes) {
      if (is_of_parameters[static_cast<std::size_t>(id)]) {
        update.parameters = id;
      } else {
        update.own.push_back(id);
      }
    }
    update.gradient =
        *std::ranges::find_if(task.reads, [&](DataId id) { return !has(task.writes, id); });
    const um::Bytes size = step.graph[update.gradient].size;
    update.floats = size.count() / sizeof(float);
    if (size >= kSmallestDivided) found.push_back(std::move(update));
  }
  return found;
}

void shrink_state(Step& step, const LargeUpdate& update, std::size_t ranks) {
  for (StateBlock& block : step.state) {
    for (std::size_t part = 0; part < block.ids.size(); ++part) {
      if (!has(update.own, block.ids[part])) continue;
      block.divided.resize(block.ids.size());
      block.divided[part] = update.floats;
      step.graph.data[static_cast<std::size_t>(block.ids[part])].size =
          float_bytes(largest_slice(ranks, update.floats));
    }
  }
}

// Adds the block in which the updated slices of all ranks come together.
DataId add_updated(Step& step, const LargeUpdate& update, const ParameterPart& part) {
  return step.graph.add(
      prefetch::DataBlock{.name = step.graph[update.parameters].name + ".updated" + suffix_of(part),
                          .size = step.graph[update.gradient].size,
                          .kind = prefetch::DataKind::kState,
                          .lies_in = update.gradient});
}

// Makes the update at `place` one of a slice, and puts the task behind it that takes all slices.
void divide(Step& step, std::size_t place, const LargeUpdate& update, const SizeModel& size_model,
            const OptimizerDivision& division) {
  Launch& launch = step.launches[place];
  const NumberSlice slice = slice_of_rank(division.rank, division.ranks, update.floats);
  auto& op = std::get<UpdateParameters>(launch.operation);
  const TakeParameters take{.parameters = op.parameters, .part = op.part};
  op.part.slice = FloatRange{.begin = slice.first, .end = slice.first + slice.count};
  const DataId updated = add_updated(step, update, take.part);
  Task& task = step.graph.tasks[place];
  const auto written = launch.operands.begin() + static_cast<std::ptrdiff_t>(task.reads.size());
  std::ranges::replace(task.writes, update.parameters, updated);
  std::replace(written, launch.operands.end(), update.parameters, updated);
  task.flops = cost_of(launch.operation).flops;
  task.traffic = size_model.traffic(launch.operation);

  Task taking{.name = step.graph[update.parameters].name + ".take" + suffix_of(take.part),
              .phase = prefetch::Phase::kUpdate,
              .reads = {updated},
              .writes = {update.parameters},
              .algorithms = task.algorithms,
              .traffic = size_model.traffic(take)};
  if (read_count(take) > 1) taking.reads.push_back(update.parameters);
  Launch of_taking{.operation = take, .operands = taking.reads};
  of_taking.operands.push_back(update.parameters);
  insert_task(step, place + 1, std::move(taking), std::move(of_taking));
}

}  // namespace

void divide_updates(Step& step, const SizeModel& size_model, const OptimizerDivision& division) {
  um::expects(step.graph.exchanges.empty(), "a step whose gradients are not exchanged yet");
  if (division.is_whole()) return;
  const std::vector<LargeUpdate> updates = find_large_updates(step);
  for (const LargeUpdate& update : updates) {
    shrink_state(step, update, division.ranks);
    const auto found = std::ranges::find(step.graph.tasks, update.task, &Task::name);
    divide(step, static_cast<std::size_t>(found - step.graph.tasks.begin()), update, size_model,
           division);
  }
}

void exchange_gradients(Step& step, const prefetch::BucketRule& rule) {
  step.graph = prefetch::with_exchanges(std::move(step.graph), rule);
  for (prefetch::GradientExchange& exchange : step.graph.exchanges) {
    if (!exchange.is_of_gradients()) continue;
    step.gradients.insert(step.gradients.end(), exchange.blocks.begin(), exchange.blocks.end());
    for (const WaitingSum& waiting : step.waiting) {
      const bool is_part = std::ranges::count(exchange.blocks, waiting.sum) > 0;
      if (is_part) exchange.waiting.push_back(waiting.block);
    }
  }
  std::ranges::sort(step.gradients);
  const std::vector<prefetch::TaskId> order = prefetch::update_order(step.graph);
  std::vector<Launch> launches;
  launches.reserve(order.size());
  for (const prefetch::TaskId task : order) {
    launches.push_back(std::move(step.launches[static_cast<std::size_t>(task)]));
  }
  step.launches = std::move(launches);
  step.graph = prefetch::in_order(std::move(step.graph), order);
}

OptimizerBytes optimizer_bytes(const Step& step) {
  OptimizerBytes bytes;
  for (const StateBlock& block : step.state) {
    if (block.role != StateRole::kOptimizer) continue;
    for (std::size_t part = 0; part < block.ids.size(); ++part) {
      const um::Bytes kept = step.graph[block.ids[part]].size;
      const bool is_divided = !block.divided.empty() && block.divided[part] > 0;
      bytes.kept += kept;
      bytes.whole += is_divided ? float_bytes(block.divided[part]) : kept;
    }
  }
  return bytes;
}

}  // namespace spillway
