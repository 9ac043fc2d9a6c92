#include "src/program/micro_batches.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/block_sizes.h"
#include "src/program/passes.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::DataBlock;
using prefetch::DataId;
using prefetch::DataKind;
using prefetch::Phase;
using prefetch::Task;

// The gradient of a part of a parameter block.
struct PartGradient {
  const StateBlock* block;
  ParameterPart part;
};

// An update reads the gradient, the key, and writes the block.
std::map<DataId, PartGradient> parameter_gradients(const Step& training) {
  std::map<DataId, const StateBlock*> parameters;
  for (const StateBlock& block : training.state) {
    if (block.role == StateRole::kParameters) parameters.emplace(block.ids.front(), &block);
  }
  std::map<DataId, PartGradient> gradients;
  for (std::size_t t = 0; t < training.launches.size(); ++t) {
    const Task& task = training.graph.tasks[t];
    const auto* const update = std::get_if<UpdateParameters>(&training.launches[t].operation);
    if (update == nullptr) continue;
    const auto updated =
        std::ranges::find_if(task.writes, [&](const DataId id) { return parameters.contains(id); });
    for (const DataId id : task.reads) {
      if (training.graph[id].kind == DataKind::kTensor) {
        gradients.emplace(id, PartGradient{.block = parameters.at(*updated), .part = update->part});
      }
    }
  }
  return gradients;
}

// Returns by task the gradients to which no later one contributes.
std::vector<std::vector<DataId>> find_completed(const Step& training,
                                                const std::map<DataId, PartGradient>& gradients) {
  std::map<DataId, std::size_t> last;
  for (std::size_t t = 0; t < training.launches.size(); ++t) {
    const Task& task = training.graph.tasks[t];
    if (task.phase == Phase::kUpdate) continue;
    for (const DataId id : task.writes) {
      if (gradients.contains(id)) last[id] = t;
    }
  }
  std::vector<std::vector<DataId>> completed(training.launches.size());
  for (const auto& [gradient, task] : last) completed[task].push_back(gradient);
  return completed;
}

// Has the operation work on samples from number `first` of the batch on.
void begin_at(Operation& operation, std::size_t first) {
  const auto begin = [first](auto& op) {
    if constexpr (requires { op.first_sample; }) op.first_sample = first;
    if constexpr (requires { op.geometry.first_sample; }) op.geometry.first_sample = first;
  };
  std::visit(begin, operation);
}

// Puts training steps of micro-batches one behind the other.
class Unroller {
 public:
  Unroller(const MicroBatches& batches, const SizeModel& size_model)
      : batches_{batches}, size_model_{size_model} {}

  void add(const Step& training, bool updates) {
    ids_.assign(training.graph.data.size(), std::nullopt);
    if (training_ != &training) {
      training_ = &training;
      gradients_ = parameter_gradients(training);
      completed_by_ = find_completed(training, gradients_);
    }
    if (number_ == 0) add_state();
    take_state();
    add_result();
    for (std::size_t t = 0; t < training.launches.size(); ++t) {
      const Task& task = training.graph.tasks[t];
      if (task.phase == Phase::kUpdate) {
        if (updates) add_update(t);
        continue;
      }
      for (const DataId id : task.writes) {
        if (gradients_.contains(id) && !ids_[index_of(id)]) push_gradient(id);
      }
      add_task(t);
      for (const DataId gradient : completed_by_[t]) merge(gradient);
    }
    first_sample_ += load_of(training).x.batch;
    ++number_;
  }

  [[nodiscard]] Step take() {
    for (const auto& [name, stack] : sums_) {
      for (const DataId sum : stack) made_.graph.data[index_of(sum)].lies_in.reset();
      for (std::size_t node = 0; node + 1 < stack.size(); ++node) wait(stack, node);
    }
    const auto outlives = [this](DataId id) { return made_.graph[id].kind == DataKind::kState; };
    for (Task& task : made_.graph.tasks) {
      if (std::ranges::any_of(task.writes, outlives)) task.is_recomputable = false;
    }
    free_order();
    return std::move(made_);
  }

 private:
  // Gives small tensors memory of their own if they take little, in the page of moving state.
  void free_order() {
    constexpr std::uint64_t kPart = 8;
    Step moving{.graph = made_.graph, .state = made_.state};
    let_state_move(moving);
    const um::Bytes page =
        std::max(step_page(made_.graph, size_model_), step_page(moving.graph, size_model_));
    const prefetch::BlockSizes block_sizes{made_.graph, page};
    um::Bytes parameters;
    for (const StateBlock& block : made_.state) {
      if (block.role != StateRole::kParameters) continue;
      for (const DataId id : block.ids) parameters += made_.graph[id].size;
    }
    std::vector<DataId> sharing;
    um::Bytes shared;
    for (std::size_t i = 0; i < made_.graph.data.size(); ++i) {
      if (!block_sizes.host_of(made_.graph, DataId(i))) continue;
      sharing.push_back(DataId(i));
      shared += um::round_up(made_.graph.data[i].size, prefetch::kNearAlignment);
    }
    if (kPart * shared > parameters) return;
    for (const DataId id : sharing) made_.graph.data[index_of(id)].lies_in.reset();
  }

  [[nodiscard]] std::string suffix() const {
    return number_ == 0 ? "" : kMicroBatchMark + std::to_string(number_ + 1);
  }

  // The state of the step, once. Batch norms' is changed when the batch ends.
  void add_state() {
    for (const StateBlock& block : training_->state) {
      StateBlock own = block;
      for (DataId& id : own.ids) {
        id = made_.graph.add(DataBlock{training_->graph[id]});
        by_name_.emplace(made_.graph[id].name, id);
      }
      made_.state.push_back(std::move(own));
    }
    if (!training_->staged) return;
    DataBlock staged = training_->graph[*training_->staged];
    LoadBatch whole = load_of(*training_);
    whole.x.batch = batches_.own_samples();
    staged.size = size_model_.staged_bytes(whole);
    made_.staged = made_.graph.add(std::move(staged));
  }

  void take_state() {
    std::vector<DataId>& statistics = made_.statistics.emplace_back();
    for (const StateBlock& block : training_->state) {
      for (const DataId id : block.ids) {
        const DataBlock& own = training_->graph[id];
        if (block.role != StateRole::kStatistics) {
          ids_[index_of(id)] = by_name_.at(own.name);
          continue;
        }
        statistics.push_back(made_.graph.add(
            DataBlock{.name = own.name + kMicroBatchMark + std::to_string(number_ + 1),
                      .size = own.size,
                      .kind = DataKind::kState}));
        ids_[index_of(id)] = statistics.back();
      }
    }
    if (training_->staged) ids_[index_of(*training_->staged)] = made_.staged;
  }

  // Results are read when the step has ended.
  void add_result() {
    const DataId id = training_->results.front();
    DataBlock own = training_->graph[id];
    own.name += suffix();
    made_.results.push_back(made_.graph.add(std::move(own)));
    ids_[index_of(id)] = made_.results.back();
  }

  [[nodiscard]] DataId made_id(DataId id) {
    std::optional<DataId>& made = ids_[index_of(id)];
    if (!made) made = add_tensor(training_->graph[id], training_->graph[id].name);
    return *made;
  }

  // A tensor of this micro-batch that may lie in the first one of the same `place`: that is dead.
  DataId add_tensor(const DataBlock& block, const std::string& place) {
    DataBlock own = block;
    own.name += suffix();
    const auto [first, is_first] = places_.emplace(place, DataId{});
    const bool is_small = block.size <= prefetch::largest_small(prefetch::kLargestPage);
    if (!is_first && is_small) own.lies_in = first->second;
    const DataId id = made_.graph.add(std::move(own));
    if (is_first) first->second = id;
    return id;
  }

  // Each sum that waits has a place of its own.
  void push_gradient(DataId gradient) {
    const DataBlock& block = training_->graph[gradient];
    std::vector<DataId>& stack = sums_[block.name];
    const std::string place = block.name + kMicroBatchMark + std::to_string(stack.size());
    stack.push_back(add_tensor(block, place));
    ids_[index_of(gradient)] = stack.back();
  }

  void merge(DataId gradient) {
    std::vector<DataId>& stack = sums_.at(training_->graph[gradient].name);
    const std::size_t merges =
        batches_.tree.merges_after(batches_.own, batches_.own.first + number_);
    for (std::size_t i = 0; i < merges; ++i) {
      const DataId part = stack.back();
      stack.pop_back();
      accumulate(gradients_.at(gradient), stack.back(), part);
    }
  }

  void accumulate(const PartGradient& gradient, DataId sum, DataId part) {
    const std::string name = gradient.block->name + ".accumulate" + suffix_of(gradient.part);
    const AccumulateGradients operation{.parameters = gradient.block->spec, .part = gradient.part};
    const OperationCost cost = cost_of(operation);
    made_.graph.add(Task{
        .name = name + kMicroBatchMark + std::to_string(++merges_[name]),
        .phase = Phase::kBackward,
        .reads =
            listed<DataId>(AccumulateGradients::Reads<DataId>{.sum = sum, .dparameters = part}, 2),
        .writes = {sum},
        .flops = cost.flops,
        .traffic = cost.traffic});
    made_.launches.push_back({.operation = operation, .operands = {sum, part, sum}});
  }

  void add_task(std::size_t index) {
    const auto renumber = [this](std::vector<DataId>& ids) {
      for (DataId& id : ids) id = made_id(id);
    };
    Task task = training_->graph.tasks[index];
    um::expects(task.after.empty(), "tasks of a network follow each other by data alone");
    task.name += suffix();
    if (!is_update(task)) task.micro_batch = static_cast<std::uint32_t>(number_);
    renumber(task.reads);
    renumber(task.writes);
    renumber(task.updates_once);
    Launch launch = training_->launches[index];
    renumber(launch.operands);
    begin_at(launch.operation, first_sample_);
    if (auto* const load = std::get_if<LoadBatch>(&launch.operation)) {
      load->staged_samples = batches_.own_samples();
    }
    made_.graph.add(std::move(task));
    made_.launches.push_back(std::move(launch));
  }

  // With the last sum, to which those of other ranks are added.
  void add_update(std::size_t index) {
    for (const DataId id : training_->launches[index].operands) {
      if (!gradients_.contains(id)) continue;
      ids_[index_of(id)] = sums_.at(training_->graph[id].name).back();
    }
    add_task(index);
    made_.graph.tasks.back().name = training_->graph.tasks[index].name;
  }

  // The sum outlives the step: other ranks need it.
  void wait(const std::vector<DataId>& stack, std::size_t node) {
    made_.waiting.push_back({.sum = stack.back(), .node = node, .block = stack[node]});
    made_.graph.data[index_of(stack[node])].kind = DataKind::kState;
  }

  const MicroBatches& batches_;
  const SizeModel& size_model_;
  Step made_;
  std::size_t number_ = 0;  // of the micro-batch that is added
  std::size_t first_sample_ = 0;
  const Step* training_ = nullptr;  // its step
  std::map<DataId, PartGradient> gradients_;
  std::vector<std::vector<DataId>> completed_by_;    // by task
  std::vector<std::optional<DataId>> ids_;           // by block of its step: which it is
  std::map<std::string, DataId> by_name_;            // state
  std::map<std::string, DataId> places_;             // the first tensor of each
  std::map<std::string, std::vector<DataId>> sums_;  // by gradient's name: a stack
  std::map<std::string, std::size_t> merges_;
};

}  // namespace

Step make_program(const nets::Network& network, const SizeModel& size_model,
                  const StepOptions& options, const MicroBatches& batches) {
  const auto training = [&](std::size_t samples) {
    StepOptions own = options;
    own.batch = samples;
    return make_training_step(network, size_model, own);
  };
  um::expects(batches.own.count() > 0, "micro-batches to train");
  if (batches.count() == 1) return training(batches.batch);
  const Step max = training(batches.size);
  const std::size_t whole = batches.own_samples() / batches.size;  // micro-batches
  const std::size_t rest = batches.own_samples() % batches.size;
  Unroller unroller{batches, size_model};
  for (std::size_t i = 0; i < whole; ++i) {
    unroller.add(max, rest == 0 && i + 1 == whole);
  }
  if (rest > 0) unroller.add(training(rest), true);
  Step made = unroller.take();
  expect_unique_names(made, network);
  return made;
}

}  // namespace spillway
