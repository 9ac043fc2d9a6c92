#include "tests/src/cuda/emulated_gpu/cudnn_descriptors.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::emulated {
namespace {

using Engines = std::vector<Engine>;

// Lists of engines, by expected speed, for the two modes of the heuristics.
struct EngineLists {
  const char* kind;
  Engines mode_a;
  Engines fallback;
};

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr auto kTensorCore = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
constexpr auto kNondeterministic = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
constexpr auto kTile = CUDNN_KNOB_TYPE_TILE_SIZE;
constexpr auto kTileK = CUDNN_KNOB_TYPE_TILEK;
constexpr auto kKernel = CUDNN_KNOB_TYPE_KERNEL_CFG;

Engine compiled(std::int64_t number, std::vector<Knob> knobs, std::int64_t workspace) {
  return {.number = number,
          .knobs = std::move(knobs),
          .workspace = workspace,
          .numerics = {kTensorCore},
          .behaviour = {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}};
}

Engine without_plan(Engine engine) {
  engine.has_plan = false;
  return engine;
}

// Engine 45 rounds its inputs, 62's plan needs more than its configuration states, and the fallback
// repeats an engine.
const EngineLists kConvolutionEngines{
    .kind = "convolution",
    .mode_a = {{67, {{kTile, 5}, {kTileK, 0}}, 3 * kMebibyte + 4096, {kTensorCore}},
               {34, {{kTile, 5}}, 0, {kTensorCore}},
               compiled(70, {}, 0),
               {45, {}, 0, {kTensorCore, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}},
               without_plan({58, {}, 0}),
               {62, {}, 4096, {}, {}, kMebibyte},
               {11, {{kKernel, 2}}, 2 * kMebibyte},
               {1, {}, 0, {kNondeterministic}}},
    .fallback = {{0, {}, 131}, {1, {}, 0, {kNondeterministic}}}};

const EngineLists kFusedEngines{.kind = "fused convolution",
                                .mode_a = {{51, {}, 0, {kTensorCore}},
                                           {52, {{kTile, 7}}, 2 * kMebibyte + 4096, {kTensorCore}},
                                           without_plan({53, {}, 0}),
                                           {54, {}, 0}},
                                .fallback = {}};

const EngineLists kAttentionEngines{.kind = "attention",
                                    .mode_a = {compiled(2, {{kKernel, 7}}, 70000),
                                               compiled(1, {{kKernel, 6}}, 0),
                                               without_plan(compiled(1, {{kKernel, 3}}, 0)),
                                               {3, {}, 0, {kTensorCore, kNondeterministic}}},
                                    .fallback = {compiled(1, {}, 0)}};

bool is_convolution(const CudnnOperation& operation) {
  return std::holds_alternative<ConvolutionOperation>(operation);
}

// cuDNN fuses a bias and a ReLU into a convolution.
bool is_fusible(const CudnnOperation& operation) {
  const auto* const pointwise = std::get_if<PointwiseOperation>(&operation);
  return pointwise != nullptr &&
         (pointwise->mode == CUDNN_POINTWISE_ADD || pointwise->mode == CUDNN_POINTWISE_RELU_FWD);
}

bool is_matmul_of_bf16(const CudnnOperation& operation) {
  const auto* const matmul = std::get_if<MatmulOperation>(&operation);
  return matmul != nullptr && matmul->a.type == CUDNN_DATA_BFLOAT16;
}

// Throws: NotSupported if no engine recognises the graph.
const EngineLists& engines_for(const OperationGraph& graph) {
  const std::vector<CudnnOperation>& all = graph.operations();
  if (all.size() == 1 && is_convolution(all.front())) return kConvolutionEngines;
  if (is_convolution(all.front()) && all.size() <= 3 &&
      std::all_of(all.begin() + 1, all.end(), is_fusible)) {
    return kFusedEngines;
  }
  if (std::count_if(all.begin(), all.end(), is_matmul_of_bf16) >= 2) return kAttentionEngines;
  throw NotSupported{"no engine recognises the graph"};
}

}  // namespace

std::string text_of(cudnnBackendDescriptorType_t type) {
  return "a descriptor of type " + std::to_string(static_cast<int>(type));
}

namespace {

// cuDNN's names for the parts of a convolution in one pass.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t type;
  CudnnPass pass;
  cudnnBackendAttributeName_t x, w, y, settings, alpha, beta;
};

constexpr std::array<ConvolutionNames, 3> kConvolutions{
    {{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CudnnPass::kForward,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
     {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CudnnPass::kBackwardData,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
     {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CudnnPass::kBackwardFilter,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}}};

constexpr std::int64_t kMany = 1 << 20;
constexpr auto kReference = CUDNN_TYPE_BACKEND_DESCRIPTOR;
constexpr auto kInteger = CUDNN_TYPE_INT64;

AttributeRule optional(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) {
  return {name, type, 1, 1, Use::kOptional};
}
AttributeRule result(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) {
  return {name, type, 1, 1, Use::kResult};
}
AttributeRule results(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) {
  return {name, type, kMany, 0, Use::kResult};
}

using DescriptorRules = std::map<cudnnBackendDescriptorType_t, AttributeRules>;

// The rules of all descriptors but operations that convolve. A tensor has four dimensions, a
// convolution two.
const DescriptorRules kPlainRules{
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
     {{CUDNN_ATTR_TENSOR_UNIQUE_ID, kInteger},
      {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
      {CUDNN_ATTR_TENSOR_DIMENSIONS, kInteger, 4, 4},
      {CUDNN_ATTR_TENSOR_STRIDES, kInteger, 4, 4},
      {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kInteger},
      optional(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN),
      optional(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN)}},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     {{CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, kInteger},
      {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
      {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE},
      {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, kInteger, 2, 2},
      {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, kInteger, 2, 2},
      {CUDNN_ATTR_CONVOLUTION_DILATIONS, kInteger, 2, 2},
      {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, kInteger, 2, 2}}},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
     {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
      {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
      optional(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION),
      optional(CUDNN_ATTR_POINTWISE_AXIS, kInteger)}},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kReference},
      {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kReference},
      optional(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kReference),
      optional(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, kReference),
      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kReference},
      optional(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT),
      optional(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT)}},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE}}},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, kReference},
      {CUDNN_ATTR_OPERATION_MATMUL_BDESC, kReference},
      {CUDNN_ATTR_OPERATION_MATMUL_CDESC, kReference},
      {CUDNN_ATTR_OPERATION_MATMUL_DESC, kReference}}},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
     {{CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE},
      {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE}}},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kReference},
      {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kReference},
      {CUDNN_ATTR_OPERATION_REDUCTION_DESC, kReference}}},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
     {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kReference},
      {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, kReference}}},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
     {optional(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE),
      {CUDNN_ATTR_OPERATIONGRAPH_OPS, kReference, kMany}}},
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR,
     {{CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, kMany}}},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
     {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kReference},
      {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE},
      optional(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, kReference),
      results(CUDNN_ATTR_ENGINEHEUR_RESULTS, kReference)}},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
     {result(CUDNN_ATTR_ENGINECFG_ENGINE, kReference),
      results(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, kReference),
      result(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, kInteger)}},
    {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
     {result(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE),
      result(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, kInteger)}},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR,
     {result(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, kInteger),
      results(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE),
      results(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE)}},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
     {{CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kReference},
      optional(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE),
      optional(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, kReference),
      result(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, kInteger)}},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
     {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, kInteger, kMany},
      {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, kMany},
      {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR}}}};

DescriptorRules with_convolutions(DescriptorRules rules) {
  for (const ConvolutionNames& names : kConvolutions) {
    AttributeRules& own = rules[names.type];
    for (const auto name : {names.x, names.w, names.y, names.settings}) {
      own.push_back({name, kReference});
    }
    for (const auto name : {names.alpha, names.beta}) own.push_back({name, CUDNN_TYPE_FLOAT});
  }
  return rules;
}

}  // namespace

const AttributeRules& rules_of(cudnnBackendDescriptorType_t type) {
  static const DescriptorRules rules = with_convolutions(kPlainRules);
  const auto found = rules.find(type);
  if (found == rules.end()) throw NotSupported{text_of(type) + " is not emulated"};
  return found->second;
}

std::size_t value_bytes(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_INT64:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    default:
      return 4;
  }
}

const AttributeRule& rule_for(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type) {
  const AttributeRules& rules = rules_of(descriptor.type);
  const auto rule = std::find_if(rules.begin(), rules.end(),
                                 [&](const AttributeRule& each) { return each.name == name; });
  const std::string attribute =
      "attribute " + std::to_string(static_cast<int>(name)) + " of " + text_of(descriptor.type);
  require(rule != rules.end(), attribute + " is not emulated");
  require(rule->type == type, attribute + " has another type than the caller says");
  return *rule;
}

namespace {

template <std::size_t kCount>
std::array<std::int64_t, kCount> integers_of(const Descriptor& descriptor,
                                             cudnnBackendAttributeName_t name) {
  return value_of<std::array<std::int64_t, kCount>>(descriptor, name);
}

// Returns nullptr for an attribute that was not set.
const Descriptor* find_reference(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                                 cudnnBackendDescriptorType_t type) {
  const auto found = descriptor.attributes.find(name);
  if (found == descriptor.attributes.end()) return nullptr;
  const Descriptor& referred = *found->second.references.front();
  require(referred.type == type, text_of(descriptor.type) + " refers to " + text_of(referred.type) +
                                     " as " + text_of(type));
  return &referred;
}

}  // namespace

const Descriptor& reference(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                            cudnnBackendDescriptorType_t type) {
  return *find_reference(descriptor, name, type);
}

namespace {

const CudnnTensor& tensor_of(const Descriptor& operation, cudnnBackendAttributeName_t name) {
  return reference(operation, name, CUDNN_BACKEND_TENSOR_DESCRIPTOR).tensor;
}

std::optional<CudnnTensor> find_tensor(const Descriptor& operation,
                                       cudnnBackendAttributeName_t name) {
  const Descriptor* const found = find_reference(operation, name, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  if (found == nullptr) return std::nullopt;
  return found->tensor;
}

}  // namespace

void require_alive(const Descriptor& descriptor) {
  require(!descriptor.is_destroyed, text_of(descriptor.type) + " is used after it was destroyed");
  for (const auto& [name, attribute] : descriptor.attributes) {
    for (const Reference& referred : attribute.references) require_alive(*referred);
  }
}

namespace {

void require_float(const Descriptor& settings, cudnnBackendAttributeName_t name) {
  if (value_of<cudnnDataType_t>(settings, name) != CUDNN_DATA_FLOAT) {
    throw NotSupported{text_of(settings.type) + " computes in another type than float"};
  }
}

CudnnTensor make_tensor(const Descriptor& d) {
  CudnnTensor tensor{.id = value_of<std::int64_t>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID),
                     .type = value_of<cudnnDataType_t>(d, CUDNN_ATTR_TENSOR_DATA_TYPE),
                     .dims = integers_of<4>(d, CUDNN_ATTR_TENSOR_DIMENSIONS),
                     .strides = integers_of<4>(d, CUDNN_ATTR_TENSOR_STRIDES),
                     .alignment = value_of<std::int64_t>(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
                     .is_virtual = value_of<bool>(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL),
                     .is_by_value = value_of<bool>(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
  check(tensor);
  return tensor;
}

ConvolutionOperation make_convolution(const Descriptor& d, const ConvolutionNames& names) {
  const Descriptor& settings = reference(d, names.settings, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  require_float(settings, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  require(value_of<std::int64_t>(settings, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == 2,
          "a convolution of four-dimensional tensors has other than two spatial dimensions");
  if (value_of<cudnnConvolutionMode_t>(settings, CUDNN_ATTR_CONVOLUTION_CONV_MODE) !=
      CUDNN_CROSS_CORRELATION) {
    throw NotSupported{"a convolution flips its filter"};
  }
  return {.pass = names.pass,
          .x = tensor_of(d, names.x),
          .w = tensor_of(d, names.w),
          .y = tensor_of(d, names.y),
          .before = integers_of<2>(settings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
          .after = integers_of<2>(settings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
          .stride = integers_of<2>(settings, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
          .dilation = integers_of<2>(settings, CUDNN_ATTR_CONVOLUTION_DILATIONS),
          .alpha = value_of<float>(d, names.alpha),
          .beta = value_of<float>(d, names.beta)};
}

PointwiseOperation make_pointwise(const Descriptor& d) {
  const Descriptor& settings = reference(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                                         CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  PointwiseOperation op{
      .mode = value_of<cudnnPointwiseMode_t>(settings, CUDNN_ATTR_POINTWISE_MODE),
      .keeps_nan = value_of<cudnnNanPropagation_t>(settings, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION,
                                                   CUDNN_NOT_PROPAGATE_NAN) == CUDNN_PROPAGATE_NAN,
      .x = tensor_of(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
      .b = find_tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
      .selector = find_tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC),
      .y = tensor_of(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC),
      .alpha1 = value_of<float>(d, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1.F),
      .alpha2 = value_of<float>(d, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1.F)};
  if (settings.attributes.contains(CUDNN_ATTR_POINTWISE_AXIS)) {
    op.axis = value_of<std::int64_t>(settings, CUDNN_ATTR_POINTWISE_AXIS);
  }
  if (value_of<cudnnDataType_t>(settings, CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_BOOLEAN) {
    require_float(settings, CUDNN_ATTR_POINTWISE_MATH_PREC);
  }
  return op;
}

MatmulOperation make_matmul(const Descriptor& d) {
  require_float(reference(d, CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_BACKEND_MATMUL_DESCRIPTOR),
                CUDNN_ATTR_MATMUL_COMP_TYPE);
  return {.a = tensor_of(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
          .b = tensor_of(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
          .c = tensor_of(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC)};
}

ReductionOperation make_reduction(const Descriptor& d) {
  const Descriptor& settings =
      reference(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  require_float(settings, CUDNN_ATTR_REDUCTION_COMP_TYPE);
  return {.mode = value_of<cudnnReduceTensorOp_t>(settings, CUDNN_ATTR_REDUCTION_OPERATOR),
          .x = tensor_of(d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
          .y = tensor_of(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC)};
}

// Returns nullopt for descriptors that are not operations.
std::optional<CudnnOperation> make_operation(const Descriptor& d) {
  for (const ConvolutionNames& names : kConvolutions) {
    if (names.type == d.type) return make_convolution(d, names);
  }
  switch (d.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return make_pointwise(d);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return make_matmul(d);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return make_reduction(d);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return ReshapeOperation{.x = tensor_of(d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC),
                              .y = tensor_of(d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC)};
    default:
      return std::nullopt;
  }
}

std::shared_ptr<const OperationGraph> make_graph(const Descriptor& d) {
  std::vector<CudnnOperation> operations;
  for (const Reference& each : d.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).references) {
    require(each->operation.has_value(), "a graph contains " + text_of(each->type));
    operations.push_back(*each->operation);
  }
  return std::make_shared<const OperationGraph>(std::move(operations));
}

// Returns the configurations that heuristics list, each with a reference to the graph.
std::vector<Reference> list_engines(const Descriptor& heuristics) {
  const Descriptor& graph = reference(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                      CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  (void)find_reference(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                       CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  const EngineLists& lists = engines_for(*graph.graph);
  const auto mode = value_of<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE);
  if (mode != CUDNN_HEUR_MODE_A && mode != CUDNN_HEUR_MODE_FALLBACK) {
    throw NotSupported{"the mode of the heuristics is not emulated"};
  }
  const Engines& engines = mode == CUDNN_HEUR_MODE_A ? lists.mode_a : lists.fallback;
  if (engines.empty()) throw NotSupported{"the heuristics have no engine in this mode"};
  std::vector<Reference> results;
  for (const Engine& engine : engines) {
    Descriptor config{.type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, .is_final = true};
    config.attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
        heuristics.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    config.graph = graph.graph;
    config.engine = &engine;
    config.kind = lists.kind;
    results.push_back(std::make_shared<const Descriptor>(std::move(config)));
  }
  return results;
}

void finalize_plan(Descriptor& plan) {
  const bool has_device = find_reference(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                         CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) != nullptr ||
                          plan.attributes.contains(CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
  require(has_device, "a plan has neither a handle nor a described device");
  const Descriptor& config =
      reference(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  if (!config.engine->has_plan) {
    throw NotSupported{"engine" + std::to_string(config.engine->number) + " cannot run the graph"};
  }
  plan.graph = config.graph;
  plan.engine = config.engine;
  plan.kind = config.kind;
}

}  // namespace

void finalize(Descriptor& d) {
  for (const AttributeRule& rule : rules_of(d.type)) {
    require(rule.use != Use::kRequired || d.attributes.contains(rule.name),
            text_of(d.type) + " lacks attribute " + std::to_string(static_cast<int>(rule.name)));
  }
  require_alive(d);
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      d.tensor = make_tensor(d);
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      d.graph = make_graph(d);
      break;
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      require(value_of<char>(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION) == '{',
              "the description of a device is not JSON");
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      d.results = list_engines(d);
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      finalize_plan(d);
      break;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
    case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR:
      throw NotSupported{text_of(d.type) + " can come only from the heuristics"};
    default:
      d.operation = make_operation(d);
      if (d.operation) check(*d.operation);
      break;
  }
  d.is_final = true;
}

}  // namespace spillway::emulated
