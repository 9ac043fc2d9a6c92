#include "src/program/step_builder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "src/program/passes.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::DataId;
using prefetch::DataKind;

bool takes_relu(const nets::Layer& layer) {
  return std::holds_alternative<nets::Convolution>(layer) ||
         std::holds_alternative<nets::TransposedConvolution>(layer) ||
         std::holds_alternative<nets::BatchNorm>(layer) ||
         std::holds_alternative<nets::Linear>(layer) || std::holds_alternative<nets::Add>(layer);
}

constexpr const char* kNoCudnnAttention =
    "cuDNN has no attention for this: it takes an NVIDIA GPU, bf16, no dropout, and heads whose "
    "width is a multiple of 8; leave out --attention cudnn";

bool is_attention(const Operation& operation) {
  return std::holds_alternative<AttentionForward>(operation) ||
         std::holds_alternative<AttentionBackward>(operation);
}

// Whether two operations of one type are the same; false of all but those with weights, of which a
// library is asked. Names all members, so that one more does not compile.
template <class Op>
bool are_same(const Op& /*a*/, const Op& /*b*/) {
  return false;
}
template <class Geometry>
bool are_same(const WeightedForward<Geometry>& a, const WeightedForward<Geometry>& b) {
  const auto& [geometry, relu] = a;
  return geometry == b.geometry && relu == b.relu;
}
template <class Geometry>
bool are_same(const WeightedBackwardData<Geometry>& a, const WeightedBackwardData<Geometry>& b) {
  const auto& [geometry] = a;
  return geometry == b.geometry;
}
template <class Geometry>
bool are_same(const WeightedBackwardWeights<Geometry>& a,
              const WeightedBackwardWeights<Geometry>& b) {
  const auto& [geometry, part] = a;
  return geometry == b.geometry && part == b.part;
}

bool is_same(const Operation& a, const Operation& b) {
  return a.index() == b.index() &&
         std::visit(
             [&](const auto& own) {
               return are_same(own, std::get<std::decay_t<decltype(own)>>(b));
             },
             a);
}

prefetch::TaskKind task_kind(OperationKind kind) {
  using prefetch::TaskKind;
  switch (kind) {
    case OperationKind::kOther:
      break;
    case OperationKind::kConvolution:
      return TaskKind::kConvolution;
    case OperationKind::kLinear:
      return TaskKind::kLinear;
    case OperationKind::kPool:
      return TaskKind::kPool;
    case OperationKind::kActivation:
      return TaskKind::kActivation;
    case OperationKind::kNormalization:
      return TaskKind::kNormalization;
    case OperationKind::kDropout:
      return TaskKind::kDropout;
    case OperationKind::kJoin:
      return TaskKind::kJoin;
  }
  return TaskKind::kOther;
}

}  // namespace

std::vector<std::size_t> count_readers(const nets::Network& network) {
  std::vector<std::size_t> readers(network.nodes.size());
  for (const nets::Node& node : network.nodes) {
    for (const nets::NodeId input : nets::read_by(node)) ++readers[static_cast<std::size_t>(input)];
  }
  return readers;
}

std::vector<FusedLayer> fuse(const nets::Network& network) {
  const std::vector<std::size_t> readers = count_readers(network);
  std::vector<std::optional<nets::NodeId>> relu_of(network.nodes.size());
  std::vector<bool> is_absorbed(network.nodes.size(), false);
  for (std::size_t i = 1; i < network.nodes.size(); ++i) {
    const nets::Node& node = network.nodes[i];
    if (!std::holds_alternative<nets::Relu>(node.layer)) continue;
    const auto input = static_cast<std::size_t>(node.inputs[0]);
    if (input == 0 || readers[input] != 1 || !takes_relu(network.nodes[input].layer)) continue;
    relu_of[input] = nets::NodeId(i);
    is_absorbed[i] = true;
  }
  std::vector<FusedLayer> layers;
  for (std::size_t i = 1; i < network.nodes.size(); ++i) {
    if (is_absorbed[i]) continue;
    const nets::NodeId node{static_cast<std::uint32_t>(i)};
    layers.push_back(
        {.node = node, .output = relu_of[i].value_or(node), .relu = relu_of[i].has_value()});
  }
  return layers;
}

StepBuilder::StepBuilder(const nets::Network& network, const SizeModel& size_model,
                         StepOptions options, Purpose purpose)
    : network_{network},
      size_model_{size_model},
      options_{std::move(options)},
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

void StepBuilder::share_table(nets::NodeId embedding, const TrainedBlocks& blocks) {
  tables_[embedding] = {.blocks = blocks, .gradient = {}};
}

const SharedTable& StepBuilder::table(nets::NodeId embedding) const {
  return tables_.at(embedding);
}

void StepBuilder::set_table_gradient(nets::NodeId embedding, DataId gradient) {
  tables_.at(embedding).gradient = gradient;
}

DataId StepBuilder::new_tensor(std::string name, const TensorShape& shape) {
  return new_bytes(std::move(name), size_model_.tensor_bytes(shape));
}

DataId StepBuilder::new_bytes(std::string name, um::Bytes size) {
  return step_.graph.add(
      prefetch::DataBlock{.name = std::move(name), .size = size, .kind = DataKind::kTensor});
}

TrainedBlocks StepBuilder::new_parameters(const std::string& name, const ParameterSpec& spec) {
  TrainedBlocks blocks{.parameters = new_state(name, spec, StateRole::kParameters).front()};
  if (!is_training()) return blocks;
  blocks.is_frozen = is_frozen(name);
  blocks.optimizer.resize(parts_of(spec));
  if (blocks.is_frozen) return blocks;
  const auto add = [&](std::string_view kept, StateRole role) {
    const std::vector<DataId> ids =
        new_state(name + "." + std::string{kept}, spec, role, blocks.optimizer.size());
    for (std::size_t i = 0; i < ids.size(); ++i) blocks.optimizer[i].push_back(ids[i]);
  };
  for (const StateTensor& state : states_of(options_.optimizer)) {
    add(state.name, StateRole::kOptimizer);
  }
  if (options_.average_decay > 0) add("average", StateRole::kAverage);  // last: emit_now()
  return blocks;
}

bool StepBuilder::is_frozen(const std::string& name) const {
  return std::ranges::any_of(
      options_.frozen, [&](const std::string& pattern) { return is_layer_of(pattern, name); });
}

std::size_t StepBuilder::parts_of(const ParameterSpec& spec) const {
  const um::Bytes most = options_.largest_update;
  return size_model_.parameter_bytes(spec) > most + most ? size_model_.parameter_parts(spec, most)
                                                         : 1;
}

DataId StepBuilder::new_statistics(const std::string& name, std::size_t channels) {
  return new_state(name + ".running", BatchNormStatistics{.channels = channels},
                   StateRole::kStatistics)
      .front();
}

DataId StepBuilder::new_parameter_gradient(const std::string& name, const ParameterSpec& spec,
                                           const ParameterPart& part) {
  return new_bytes(name + ".dw" + suffix_of(part), size_model_.parameter_part_bytes(spec, part));
}

std::vector<DataId> StepBuilder::new_state(const std::string& name, const ParameterSpec& spec,
                                           StateRole role, std::size_t parts) {
  std::vector<DataId> ids;
  for (std::size_t i = 0; i < parts; ++i) {
    const ParameterPart part{.index = i, .count = parts};
    ids.push_back(
        step_.graph.add(prefetch::DataBlock{.name = name + suffix_of(part),
                                            .size = size_model_.parameter_part_bytes(spec, part),
                                            .kind = DataKind::kState}));
  }
  step_.state.push_back({.ids = ids, .name = name, .spec = spec, .role = role});
  return ids;
}

// Layers of deep networks repeat, and to ask a library takes longer than all else here.
std::vector<AlgorithmInfo> StepBuilder::known_algorithms(const Operation& operation) {
  constexpr std::size_t kMostKnown = 32;
  if (!is_same(operation, operation)) return size_model_.algorithms(operation);
  const auto known = std::ranges::find_if(
      known_, [&](const KnownAlgorithms& each) { return is_same(each.operation, operation); });
  if (known != known_.end()) return known->algorithms;
  known_.push_front({.operation = operation, .algorithms = size_model_.algorithms(operation)});
  if (known_.size() > kMostKnown) known_.pop_back();
  return known_.front().algorithms;
}

std::vector<prefetch::Algorithm> StepBuilder::algorithms(const Operation& operation) {
  std::vector<prefetch::Algorithm> result;
  for (const AlgorithmInfo& info : known_algorithms(operation)) {
    result.push_back({.name = info.name, .workspace = info.workspace});
  }
  if (is_attention(operation) && options_.attention == AttentionAlgorithm::kOwn) result.resize(1);
  if (is_attention(operation) && options_.attention == AttentionAlgorithm::kCudnn) {
    if (result.size() == 1) throw um::Error{kNoCudnnAttention};
    return {result[1]};
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
  const std::size_t labels_each = labels.height * labels.width;
  um::expects(!mixes_labels() || labels_each == 1, "one label to mix for each image");
  LoadBatch operation{.x = shape,
                      .labels_each = mixes_labels() ? kMixedLabelNumbers : labels_each,
                      .has_bytes = options_.has_byte_images};
  const um::Bytes staged = size_model_.staged_bytes(operation);
  if (staged > um::Bytes{}) {
    operation.is_staged = true;
    step_.staged = step_.graph.add(
        prefetch::DataBlock{.name = "staged batch", .size = staged, .kind = DataKind::kState});
  }
  label_count_ = shape.batch * labels_each;
  labels_ = new_bytes("labels", um::Bytes{operation.label_count() * sizeof(std::int32_t)});
  emit("load", prefetch::Phase::kForward, operation, {.staged = step_.staged.value_or(DataId{})},
       {.x = images, .labels = labels_});
  set_value(nets::NodeId{0}, {.shape = shape, .block = images, .needs_gradient = false});
}

DataId StepBuilder::labels_of(const TensorShape& x) const {
  um::expects(rows_of(x).batch == label_count_, "a label for each position that a loss looks at");
  return labels_;
}

void StepBuilder::emit_task(prefetch::Task task, const Operation& operation,
                            std::optional<DataId> updated_once) {
  Launch launch{.operation = operation, .operands = task.reads};
  launch.operands.insert(launch.operands.end(), task.writes.begin(), task.writes.end());
  task.kind = task_kind(row_of(operation).kind);
  task.algorithms = algorithms(operation);
  task.flops = cost_of(operation).flops;
  task.traffic = size_model_.traffic(operation);
  task.is_recomputable = row_of(operation).is_recomputable;
  if (updated_once) {
    std::erase(task.writes, *updated_once);
    task.updates_once = {*updated_once};
  }
  step_.graph.add(std::move(task));
  step_.launches.push_back(std::move(launch));
}

void StepBuilder::emit_update(const std::string& name, const ParameterSpec& spec,
                              const TrainedBlocks& blocks, DataId gradient,
                              const ParameterPart& part) {
  if (blocks.is_frozen) return;
  const Update update{
      .name = name, .spec = spec, .blocks = blocks, .gradient = gradient, .part = part};
  if (clip_norm(options_.optimizer) == 0) {
    emit_now(update);
    return;
  }
  emit_squares(update);
  waiting_.push_back(update);
}

void StepBuilder::emit_squares(const Update& update) {
  const bool accumulates = squares_.has_value();
  if (!accumulates) squares_ = new_bytes("gradient_squares", um::Bytes{sizeof(double)});
  emit(update.name + ".squares" + suffix_of(update.part), prefetch::Phase::kUpdate,
       AddSquares{.parameters = update.spec, .part = update.part, .accumulates = accumulates},
       {.dparameters = update.gradient, .squares = *squares_}, {.squares = *squares_});
}

void StepBuilder::emit_clipped_updates() {
  for (const Update& update : waiting_) {
    emit(update.name + ".clip" + suffix_of(update.part), prefetch::Phase::kUpdate,
         ClipGradient{.parameters = update.spec,
                      .part = update.part,
                      .largest_norm = clip_norm(options_.optimizer)},
         {.squares = *squares_, .dparameters = update.gradient}, {.dparameters = update.gradient});
    emit_now(update);
  }
}

void StepBuilder::emit_now(const Update& update) {
  std::vector<DataId> own = update.blocks.optimizer[update.part.index];
  const bool has_average = options_.average_decay > 0;
  const DataId average = own.empty() ? DataId{} : own.back();
  if (has_average) own.pop_back();
  emit_own_update(update, own);
  if (!has_average) return;
  emit(update.name + ".average_update" + suffix_of(update.part), prefetch::Phase::kUpdate,
       AverageParameters{
           .parameters = update.spec, .decay = options_.average_decay, .part = update.part},
       {.parameters = update.blocks.parameters, .average = average}, {.average = average});
}

void StepBuilder::emit_own_update(const Update& update, const std::vector<DataId>& own) {
  const UpdateParameters operation{
      .parameters = update.spec, .options = options_.optimizer, .part = update.part};
  std::vector<DataId> writes{update.blocks.parameters};
  writes.insert(writes.end(), own.begin(), own.end());
  std::vector<DataId> reads = writes;
  reads.insert(reads.begin() + static_cast<std::ptrdiff_t>(operation.gradient_place()),
               update.gradient);
  emit(update.name + ".update" + suffix_of(update.part), prefetch::Phase::kUpdate, operation,
       {reads}, {writes});
}

}  // namespace spillway
