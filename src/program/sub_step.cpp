#include "src/program/sub_step.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "um/error.h"

namespace spillway {
namespace {

using prefetch::DataBlock;
using prefetch::DataId;
using prefetch::DataKind;
using prefetch::Phase;
using prefetch::SubBatches;
using prefetch::Task;
using prefetch::TaskGraph;

// A part of a parameter block.
struct PartOfBlock {
  const StateBlock* block;
  ParameterPart part;
};

// By their gradients.
using ParametersOf = std::map<DataId, PartOfBlock>;

// An update reads the gradient and writes the block.
ParametersOf parameters_by_gradient(const Step& training) {
  std::map<DataId, const StateBlock*> parameters;
  for (const StateBlock& block : training.state) {
    if (block.role == StateRole::kParameters) parameters.emplace(block.ids.front(), &block);
  }
  ParametersOf gradients;
  for (std::size_t t = 0; t < training.launches.size(); ++t) {
    const Task& task = training.graph.tasks[t];
    const auto* const update = std::get_if<UpdateParameters>(&training.launches[t].operation);
    if (update == nullptr) continue;
    const auto updated =
        std::ranges::find_if(task.writes, [&](const DataId id) { return parameters.contains(id); });
    for (const DataId id : task.reads) {
      if (training.graph[id].kind == DataKind::kTensor) {
        gradients.emplace(id, PartOfBlock{.block = parameters.at(*updated), .part = update->part});
      }
    }
  }
  return gradients;
}

class SubStepMaker {
 public:
  SubStepMaker(const Step& training, SubStepPlace place, GradientParts gradient_parts)
      : training_{training},
        place_{place},
        gradient_parts_{gradient_parts},
        parameters_{parameters_by_gradient(training)},
        // The type is named: g++ 12 destroys an unnamed nested aggregate twice when a later member
        // throws.
        made_{.graph = TaskGraph{.data = training.graph.data, .tasks = {}},
              .launches = {},
              .state = training.state,
              .staged = training.staged,
              .result = training.result,
              .gradients = {}} {
    for (const auto& [gradient, parameters] : parameters_) {
      made_.graph.data[static_cast<std::size_t>(gradient)].kind = DataKind::kState;
      made_.gradients.push_back(gradient);
    }
  }

  Step make() {
    for (std::size_t t = 0; t < training_.launches.size(); ++t) {
      note_contribution(t);
    }
    for (std::size_t t = 0; t < training_.launches.size(); ++t) {
      copy(t);
    }
    return std::move(made_);
  }

 private:
  // The last task that contributes to a gradient completes it.
  void note_contribution(std::size_t index) {
    const Task& task = training_.graph.tasks[index];
    if (task.phase == Phase::kUpdate) return;
    for (const DataId id : task.writes) {
      if (parameters_.contains(id)) completed_by_[id] = index;
    }
  }

  void copy(std::size_t index) {
    Task task = training_.graph.tasks[index];
    Launch launch = training_.launches[index];
    if (task.phase == Phase::kUpdate) {
      if (place_ == SubStepPlace::kLast) add(std::move(task), std::move(launch));
      return;
    }
    if (place_ == SubStepPlace::kFirst) {
      add(std::move(task), std::move(launch));
      return;
    }
    const std::vector<DataId> sums = made_in_parts(task);
    for (const DataId sum : sums) {
      const DataId part = find_part(sum);
      std::ranges::replace(task.reads, sum, part);
      std::ranges::replace(task.writes, sum, part);
      std::ranges::replace(launch.operands, sum, part);
    }
    add(std::move(task), std::move(launch));
    for (const DataId sum : sums) {
      const bool is_complete =
          gradient_parts_ == GradientParts::kInPlace || completed_by_.at(sum) == index;
      if (is_complete) accumulate(sum, find_part(sum));
    }
  }

  // The gradients to which a task contributes in a tensor of their own. One that it reads too, to
  // add to it, may be the sum itself.
  [[nodiscard]] std::vector<DataId> made_in_parts(const Task& task) const {
    std::vector<DataId> made;
    for (const DataId id : task.writes) {
      const bool is_read = std::ranges::find(task.reads, id) != task.reads.end();
      const bool is_in_place = is_read && gradient_parts_ == GradientParts::kInPlace;
      if (parameters_.contains(id) && !is_in_place) made.push_back(id);
    }
    return made;
  }

  DataId find_part(DataId sum) {
    const auto found = parts_.find(sum);
    return found != parts_.end() ? found->second : parts_.emplace(sum, add_part(sum)).first->second;
  }

  DataId add_part(DataId sum) {
    const auto& [block, place] = parameters_.at(sum);
    return made_.graph.add(DataBlock{.name = block->name + ".dw_part" + suffix_of(place),
                                     .size = made_.graph[sum].size,
                                     .kind = DataKind::kTensor});
  }

  void accumulate(DataId sum, DataId part) {
    const auto& [block, place] = parameters_.at(sum);
    const AccumulateGradients operation{.parameters = block->spec, .part = place};
    const OperationCost cost = cost_of(operation);
    add({.name = block->name + ".accumulate" + suffix_of(place),
         .phase = Phase::kBackward,
         .reads =
             listed<DataId>(AccumulateGradients::Reads<DataId>{.sum = sum, .dparameters = part}, 2),
         .writes = {sum},
         .flops = cost.flops,
         .traffic = cost.traffic},
        {.operation = operation, .operands = {sum, part, sum}});
  }

  void add(Task task, Launch launch) {
    made_.graph.add(std::move(task));
    made_.launches.push_back(std::move(launch));
  }

  const Step& training_;
  SubStepPlace place_;
  GradientParts gradient_parts_;
  ParametersOf parameters_;
  std::map<DataId, std::size_t> completed_by_;  // tasks of the training step, by gradient
  std::map<DataId, DataId> parts_;              // by gradient
  Step made_;
};

}  // namespace

Step make_sub_step(const Step& training, SubStepPlace place, const nets::Network& network,
                   GradientParts parts) {
  Step made = SubStepMaker{training, place, parts}.make();
  expect_unique_names(made, network);
  return made;
}

std::vector<RepeatedStep> make_sub_steps(const nets::Network& network, const SizeModel& size_model,
                                         const StepOptions& options, const SubBatches& batches) {
  const auto training = [&](std::size_t batch) {
    StepOptions own = options;
    own.batch = batch;
    return make_training_step(network, size_model, own);
  };
  std::vector<RepeatedStep> steps;
  if (batches.steps == 1) {
    steps.push_back({.step = training(options.batch), .times = 1, .batch = options.batch});
    return steps;
  }
  const auto add = [&](const Step& whole, SubStepPlace place, std::size_t times,
                       std::size_t batch) {
    steps.push_back({.step = make_sub_step(whole, place, network), .times = times, .batch = batch});
  };
  const std::size_t last = options.batch - (batches.steps - 1) * batches.size;
  const Step max = training(batches.size);
  add(max, SubStepPlace::kFirst, 1, batches.size);
  if (batches.steps > 2) add(max, SubStepPlace::kMiddle, batches.steps - 2, batches.size);
  if (last == batches.size) {
    add(max, SubStepPlace::kLast, 1, last);
  } else {
    add(training(last), SubStepPlace::kLast, 1, last);
  }
  return steps;
}

bool normalizes_by_batch(const TaskGraph& training) {
  return std::ranges::any_of(training.tasks,
                             [](const Task& task) { return !task.updates_once.empty(); });
}

std::optional<std::string> norm_of_one_value(const nets::Network& network, std::size_t samples) {
  for (const nets::Node& node : network.nodes) {
    if (node.inputs.empty() || !std::holds_alternative<nets::BatchNorm>(node.layer)) continue;
    const nets::Shape& x = network[node.inputs[0]].output;
    if (samples * x.height * x.width == 1) return node.name;
  }
  return std::nullopt;
}

std::optional<std::string> last_norm_of_one_value(const nets::Network& network, std::size_t batch,
                                                  const prefetch::SubBatches& batches) {
  if (norm_of_one_value(network, batches.size)) return std::nullopt;
  return norm_of_one_value(network, batch - (batches.steps - 1) * batches.size);
}

void expect_values_to_normalize(const nets::Network& network, std::size_t batch,
                                const prefetch::SubBatches& batches) {
  const std::optional<std::string> layer = norm_of_one_value(network, batches.size);
  if (!layer) return;
  throw um::Error{
      "layer " + *layer +
      " (batch-norm) gets one value per channel and would make zeros of it; train with a larger " +
      (batch == 1 ? "batch" : "sub-batch") + " or larger images"};
}

}  // namespace spillway
