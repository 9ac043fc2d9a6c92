#include "src/step_builder.h"

#include <algorithm>
#include <utility>

#include "src/fusion.h"
#include "src/operation_cost.h"
#include "src/operation_kind.h"

namespace spillway {

using prefetch::DataId;
using prefetch::DataKind;

StepBuilder::StepBuilder(const nets::Network& network, const Sizing& sizing,
                         const StepOptions& options, Purpose purpose)
    : network_{network},
      sizing_{sizing},
      options_{options},
      purpose_{purpose},
      readers_{count_readers(network)},
      values_(network.nodes.size()) {}

const Value& StepBuilder::value(nets::NodeId node) const {
  return values_[static_cast<std::size_t>(node)];
}

void StepBuilder::set_value(nets::NodeId node, Value value) {
  values_[static_cast<std::size_t>(node)] = value;
}

bool StepBuilder::may_overwrite(nets::NodeId node) const {
  const auto index = static_cast<std::size_t>(node);
  return readers_[index] == 1 && !values_[index].is_saved;
}

DataId StepBuilder::new_tensor(std::string name, const TensorShape& shape) {
  return new_bytes(std::move(name), sizing_.tensor_bytes(shape));
}

DataId StepBuilder::new_bytes(std::string name, um::Bytes size) {
  return step_.graph.add(
      prefetch::DataBlock{.name = std::move(name), .size = size, .kind = DataKind::kTensor});
}

TrainedBlocks StepBuilder::new_parameters(const std::string& name, const ParameterSpec& spec) {
  TrainedBlocks blocks{.parameters = new_state(name, spec, StateRole::kParameters)};
  if (is_training()) blocks.momentum = new_state(name + ".momentum", spec, StateRole::kMomentum);
  return blocks;
}

DataId StepBuilder::new_statistics(const std::string& name, std::size_t channels) {
  return new_state(name + ".running", BatchNormStatistics{.channels = channels},
                   StateRole::kStatistics);
}

DataId StepBuilder::new_parameter_gradient(const std::string& name, const ParameterSpec& spec) {
  return new_bytes(name + ".dw", sizing_.parameter_bytes(spec));
}

DataId StepBuilder::new_state(const std::string& name, const ParameterSpec& spec, StateRole role) {
  const DataId id = step_.graph.add(prefetch::DataBlock{
      .name = name, .size = sizing_.parameter_bytes(spec), .kind = DataKind::kState});
  step_.state.push_back({.id = id, .name = name, .spec = spec, .role = role});
  return id;
}

std::vector<prefetch::Algorithm> StepBuilder::algorithms(const Operation& operation) const {
  std::vector<prefetch::Algorithm> result;
  for (const AlgorithmInfo& info : sizing_.algorithms(operation)) {
    result.push_back({.name = info.name, .workspace = info.workspace});
  }
  if (result.size() > 1 && options_.convolution == ConvolutionAlgorithm::kDirect) result.resize(1);
  if (result.size() > 1 && options_.convolution == ConvolutionAlgorithm::kWinograd) {
    const auto winograd = std::ranges::find(result, "winograd", &prefetch::Algorithm::name);
    result = {winograd == result.end() ? result.front() : *winograd};
  }
  return result;
}

void StepBuilder::emit_load() {
  const TensorShape shape{.batch = batch(), .image = network_.input()};
  const DataId images = new_tensor("images", shape);
  const nets::Extent labels = network_.labels();
  const LoadBatch operation{.x = shape, .labels_each = labels.height * labels.width};
  labels_ = new_bytes("labels", um::Bytes{operation.label_count() * sizeof(std::int32_t)});
  emit("load", prefetch::Phase::kForward, operation, {.reads = {}, .writes = {images, labels_}});
  set_value(nets::NodeId{0}, {.shape = shape, .block = images, .needs_gradient = false});
}

void StepBuilder::emit(std::string name, prefetch::Phase phase, const Operation& operation,
                       Operands operands) {
  const OperationCost cost = cost_of(operation);
  Launch launch{.operation = operation, .operands = operands.reads};
  launch.operands.insert(launch.operands.end(), operands.writes.begin(), operands.writes.end());
  prefetch::Task task{.name = std::move(name),
                      .phase = phase,
                      .kind = kind_of(launch.operation),
                      .reads = std::move(operands.reads),
                      .writes = std::move(operands.writes),
                      .algorithms = algorithms(launch.operation),
                      .flops = cost.flops,
                      .traffic = cost.traffic,
                      .is_recomputable = is_recomputable(launch.operation)};
  if (operands.updated_once) {
    std::erase(task.writes, *operands.updated_once);
    task.updates_once = {*operands.updated_once};
  }
  step_.graph.add(std::move(task));
  step_.launches.push_back(std::move(launch));
}

void StepBuilder::emit_update(const std::string& name, const ParameterSpec& spec,
                              const TrainedBlocks& blocks, DataId gradient) {
  emit(name + ".update", prefetch::Phase::kUpdate,
       SgdUpdate{.parameters = spec,
                 .momentum = options_.sgd.momentum,
                 .weight_decay = options_.sgd.weight_decay},
       {.reads = {blocks.parameters, blocks.momentum, gradient},
        .writes = {blocks.parameters, blocks.momentum}});
}

}  // namespace spillway
