// A stand-in for the functions of cuDNN 9's backend API that the plug-in calls. Each engine of a
// graph gives the same bits; engines differ in their workspaces and notes, as cuDNN's do.

#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/src/cuda/emulated_gpu/cudnn_operations.h"
#include "tests/src/cuda/emulated_gpu/emulated_gpu.h"

namespace spillway::emulated {
namespace {

struct Knob {
  cudnnBackendKnobType_t type;
  std::int64_t value;
};

// An engine with its settings, as the heuristics list it.
struct Engine {
  std::int64_t number;
  std::vector<Knob> knobs;
  std::int64_t workspace;
  std::vector<cudnnBackendNumericalNote_t> numerics = {};
  std::vector<cudnnBackendBehaviorNote_t> behaviour = {};
  std::int64_t more_for_plan = 0;  // workspace of the plan beyond what the configuration states
  bool has_plan = true;            // otherwise the heuristics list what cannot run
};

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

std::string text_of(cudnnBackendDescriptorType_t type) {
  return "a descriptor of type " + std::to_string(static_cast<int>(type));
}

struct Descriptor;
using Reference = std::shared_ptr<const Descriptor>;

struct Attribute {
  std::vector<char> bytes;
  std::vector<Reference> references;  // instead of bytes, if the values are descriptors
};

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool is_final = false;
  bool is_destroyed = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes = {};
  // What the attributes mean once they are final; the type says which.
  CudnnTensor tensor = {};
  std::optional<CudnnOperation> operation = {};
  std::shared_ptr<const OperationGraph> graph = {};  // also of engines, configurations and plans
  const Engine* engine = nullptr;                    // likewise
  const char* kind = "";                             // of engine
  Knob knob = {};
  std::vector<Reference> results = {};  // of heuristics
};

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

enum class Use { kRequired, kOptional, kResult };

// An attribute of a type of descriptors. Callers set it, unless it is a result.
struct AttributeRule {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  std::int64_t most = 1;  // values
  std::int64_t least = 1;
  Use use = Use::kRequired;
};

using AttributeRules = std::vector<AttributeRule>;

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

// Returns the attributes of descriptors of a type. Throws: NotSupported if there are none.
const AttributeRules& rules_of(cudnnBackendDescriptorType_t type) {
  static const DescriptorRules rules = with_convolutions(kPlainRules);
  const auto found = rules.find(type);
  if (found == rules.end()) throw NotSupported{text_of(type) + " is not emulated"};
  return found->second;
}

// The bytes of one value.
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

// The values of an attribute that was set, or none.
template <class T>
std::vector<T> values_of(const Descriptor& descriptor, cudnnBackendAttributeName_t name) {
  const auto found = descriptor.attributes.find(name);
  if (found == descriptor.attributes.end()) return {};
  std::vector<T> values(found->second.bytes.size() / sizeof(T));
  std::memcpy(values.data(), found->second.bytes.data(), values.size() * sizeof(T));
  return values;
}

template <class T>
T value_of(const Descriptor& descriptor, cudnnBackendAttributeName_t name, T otherwise = {}) {
  const auto found = descriptor.attributes.find(name);
  if (found == descriptor.attributes.end()) return otherwise;
  std::memcpy(&otherwise, found->second.bytes.data(), sizeof(T));
  return otherwise;
}

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

const Descriptor& reference(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                            cudnnBackendDescriptorType_t type) {
  return *find_reference(descriptor, name, type);
}

const CudnnTensor& tensor_of(const Descriptor& operation, cudnnBackendAttributeName_t name) {
  return reference(operation, name, CUDNN_BACKEND_TENSOR_DESCRIPTOR).tensor;
}

std::optional<CudnnTensor> find_tensor(const Descriptor& operation,
                                       cudnnBackendAttributeName_t name) {
  const Descriptor* const found = find_reference(operation, name, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  if (found == nullptr) return std::nullopt;
  return found->tensor;
}

// Requires that nothing to which the descriptor refers has been destroyed.
void require_alive(const Descriptor& descriptor) {
  require(!descriptor.is_destroyed, text_of(descriptor.type) + " is used after it was destroyed");
  for (const auto& [name, attribute] : descriptor.attributes) {
    for (const Reference& referred : attribute.references) require_alive(*referred);
  }
}

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

// Everything that callers hold.
class Library {
 public:
  [[nodiscard]] static Library& get() {
    static Library& library = *new Library;  // outlives destructors of static objects
    return library;
  }

  std::mutex mutex;

  [[nodiscard]] cudnnHandle_t add_handle() {
    void* const key = new_key();
    streams_[key] = nullptr;
    return static_cast<cudnnHandle_t>(key);
  }
  [[nodiscard]] CUstream_st*& stream_of(const void* handle) {
    const auto found = streams_.find(handle);
    require(found != streams_.end(), "a handle is used that does not exist");
    return found->second;
  }
  void erase(cudnnHandle_t handle) {
    require(streams_.erase(handle) > 0, "a handle is destroyed that does not exist");
  }

  [[nodiscard]] cudnnBackendDescriptor_t add(cudnnBackendDescriptorType_t type) {
    void* const key = new_key();
    descriptors_[key] = std::make_shared<Descriptor>(Descriptor{.type = type});
    return key;
  }
  [[nodiscard]] const std::shared_ptr<Descriptor>& find(const void* descriptor) {
    const auto found = descriptors_.find(descriptor);
    require(found != descriptors_.end(), "a descriptor is used that does not exist");
    return found->second;
  }
  [[nodiscard]] const std::shared_ptr<Descriptor>& find_final(const void* descriptor) {
    const std::shared_ptr<Descriptor>& found = find(descriptor);
    require(found->is_final, text_of(found->type) + " is used before it is finalized");
    return found;
  }
  void erase(cudnnBackendDescriptor_t descriptor) {
    find(descriptor)->is_destroyed = true;
    descriptors_.erase(descriptor);
  }

 private:
  // Returns an address that is never used again, so that what is destroyed cannot be mistaken.
  void* new_key() { return &keys_.emplace_back(); }

  std::deque<char> keys_;
  std::map<const void*, CUstream_st*> streams_;
  std::map<const void*, std::shared_ptr<Descriptor>> descriptors_;
};

std::string& last_error() {
  thread_local std::string text;
  return text;
}

cudnnStatus_t refuse(cudnnStatus_t status, const std::string& sentence) {
  last_error() = sentence;
  return status;
}

// Returns the status for an error of the device, which is `otherwise` unless memory is short.
cudnnStatus_t refuse_device(int error, const std::string& name, cudnnStatus_t otherwise) {
  return refuse(error == cudaErrorMemoryAllocation
                    ? CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                    : otherwise,
                name + " failed with CUDA's error " + std::to_string(error));
}

// Runs a function's body, and reports mistakes of the caller.
template <class Body>
cudnnStatus_t run_body(const char* name, const Body& body) {
  try {
    return body();
  } catch (const NotSupported& error) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, error.what());
  } catch (const CallerMistake& error) {
    report_mistake(std::string{name} + ": " + error.what());
    return refuse(CUDNN_STATUS_BAD_PARAM, error.what());
  }
}

// Runs a function of the library with its state locked. `failure` is its status if the device is
// lost.
template <class Body>
cudnnStatus_t serve(const char* name, const Body& body,
                    cudnnStatus_t failure = CUDNN_STATUS_INTERNAL_ERROR) {
  if (const int error = begin_call(name); error != 0) return refuse_device(error, name, failure);
  return run_body(name, [&] {
    const std::lock_guard lock{Library::get().mutex};
    body(Library::get());
    return CUDNN_STATUS_SUCCESS;
  });
}

// Runs a function that releases something, also if it then returns an error.
template <class Body>
cudnnStatus_t release(const char* name, const Body& body) {
  const int error = begin_call(name);
  const cudnnStatus_t status = run_body(name, [&] {
    const std::lock_guard lock{Library::get().mutex};
    body(Library::get());
    return CUDNN_STATUS_SUCCESS;
  });
  return error == 0 ? status : refuse_device(error, name, CUDNN_STATUS_INTERNAL_ERROR);
}

void set_attribute(Library& library, Descriptor& d, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, std::span<const char> bytes,
                   std::span<const cudnnBackendDescriptor_t> references) {
  Attribute attribute;
  attribute.bytes.assign(bytes.begin(), bytes.end());
  for (const void* each : references) {
    attribute.references.push_back(library.find_final(each));
  }
  if (type == CUDNN_TYPE_HANDLE) {
    void* handle = nullptr;
    std::memcpy(&handle, bytes.data(), sizeof handle);
    (void)library.stream_of(handle);
  }
  d.attributes[name] = std::move(attribute);
}

// Where a caller wants the values of an attribute.
struct Destination {
  std::int64_t room;
  std::int64_t* count;
  void* values;
};

template <class T>
void give(const std::vector<T>& values, const Destination& to) {
  if (to.count != nullptr) *to.count = static_cast<std::int64_t>(values.size());
  const std::size_t given = std::min(values.size(), static_cast<std::size_t>(to.room));
  if (to.values != nullptr && given > 0) std::memcpy(to.values, values.data(), given * sizeof(T));
}

// Fills the descriptors that the caller has created for the values.
void give_descriptors(Library& library, const std::vector<Reference>& values,
                      const Destination& to) {
  if (to.count != nullptr) *to.count = static_cast<std::int64_t>(values.size());
  if (to.values == nullptr) return;
  const auto* const filled = static_cast<const cudnnBackendDescriptor_t*>(to.values);
  for (std::size_t i = 0; i < values.size() && i < static_cast<std::size_t>(to.room); ++i) {
    Descriptor& target = *library.find(filled[i]);
    require(target.type == values[i]->type && !target.is_final,
            "a result cannot be put into " + text_of(target.type));
    target = *values[i];
  }
}

std::vector<Reference> knobs_of(const Engine& engine) {
  std::vector<Reference> all;
  for (const Knob& knob : engine.knobs) {
    Descriptor choice{.type = CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, .is_final = true};
    choice.knob = knob;
    all.push_back(std::make_shared<const Descriptor>(std::move(choice)));
  }
  return all;
}

void get_attribute(Library& library, const Descriptor& d, cudnnBackendAttributeName_t name,
                   const Destination& to) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return give_descriptors(library, d.results, to);
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      Descriptor engine = d;
      engine.type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
      return give_descriptors(library, {std::make_shared<const Descriptor>(std::move(engine))}, to);
    }
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      return give_descriptors(library, knobs_of(*d.engine), to);
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
      return give(std::vector{d.engine->workspace}, to);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return give(std::vector{d.engine->workspace + d.engine->more_for_plan}, to);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return give(std::vector{d.engine->number}, to);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return give(d.engine->numerics, to);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return give(d.engine->behaviour, to);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      return give(std::vector{d.knob.type}, to);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      return give(std::vector{d.knob.value}, to);
    default:
      throw CallerMistake{"an attribute is asked for that is not a result"};
  }
}

// Requires that device memory is where a tensor says.
void check_memory(const CudnnTensor& tensor, const void* address) {
  const auto misplaced =
      reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(tensor.alignment);
  require(misplaced == 0,
          describe(tensor) + " is not aligned to " + std::to_string(tensor.alignment) + " bytes");
  require(is_device_memory(address, tensor.extent()),
          describe(tensor) + " does not lie in one block of device memory");
}

// Takes the addresses from a variant pack, and reads the numbers.
TensorBindings bind(const OperationGraph& graph, const Descriptor& pack) {
  const auto ids = values_of<std::int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto addresses = values_of<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  require(ids.size() == addresses.size(), "a variant pack has more ids than addresses, or fewer");
  TensorBindings bindings;
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto found = graph.tensors().find(ids[i]);
    require(found != graph.tensors().end(),
            "id " + std::to_string(ids[i]) + " is not of a tensor of the graph");
    const CudnnTensor& tensor = found->second;
    require(!tensor.is_virtual, describe(tensor) + " is virtual, and has an address");
    require(seen.insert(ids[i]).second, describe(tensor) + " has two addresses");
    require(addresses[i] != nullptr, describe(tensor) + " has the null address");
    if (tensor.is_by_value) {
      require(!is_device_memory(addresses[i], sizeof(float)),
              describe(tensor) + " is by value, and its value lies in device memory");
      std::memcpy(&bindings.numbers[ids[i]], addresses[i], sizeof(float));
    } else {
      check_memory(tensor, addresses[i]);
      bindings.memory[ids[i]] = addresses[i];
    }
  }
  for (const auto& [id, tensor] : graph.tensors()) {
    require(tensor.is_virtual || seen.contains(id), describe(tensor) + " has no address");
  }
  return bindings;
}

// Requires that no result lies over another tensor.
void check_overlaps(const OperationGraph& graph, const TensorBindings& bindings) {
  for (const auto& [written, at_written] : bindings.memory) {
    if (!graph.is_written(written)) continue;
    const CudnnTensor& result = graph.tensors().at(written);
    for (const auto& [id, address] : bindings.memory) {
      if (id == written) continue;
      const CudnnTensor& other = graph.tensors().at(id);
      require(!overlap(result, at_written, other, address),
              describe(result) + " is written over " + describe(other));
    }
  }
}

void check_workspace(const OperationGraph& graph, const TensorBindings& bindings,
                     const void* workspace, std::size_t size) {
  constexpr std::uintptr_t kAlignment = 256;
  if (size == 0) return;
  require(reinterpret_cast<std::uintptr_t>(workspace) % kAlignment == 0,
          "the workspace is not aligned to 256 bytes");
  require(is_device_memory(workspace, size), "the workspace of " + std::to_string(size) +
                                                 " bytes does not lie in one block of device "
                                                 "memory");
  const auto* const begin = static_cast<const char*>(workspace);
  for (const auto& [id, address] : bindings.memory) {
    const CudnnTensor& tensor = graph.tensors().at(id);
    const auto* const other = static_cast<const char*>(address);
    require(other + tensor.extent() <= begin || begin + size <= other,
            describe(tensor) + " lies in the workspace");
  }
}

struct Launch {
  CUstream_st* stream;
  Work work;
};

// Checks an execution, and makes it independent of the descriptors.
Launch make_launch(Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t plan_key,
                   cudnnBackendDescriptor_t pack_key) {
  CUstream_st* const stream = library.stream_of(handle);
  const Descriptor& plan = *library.find_final(plan_key);
  const Descriptor& pack = *library.find_final(pack_key);
  require(plan.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
              pack.type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
          "what is executed is not a plan with a variant pack");
  require_alive(plan);
  require(plan.attributes.contains(CUDNN_ATTR_EXECUTION_PLAN_HANDLE),
          "a plan for a described device is executed");
  const TensorBindings bindings = bind(*plan.graph, pack);
  check_overlaps(*plan.graph, bindings);
  void* const workspace = value_of<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  const auto size = static_cast<std::size_t>(plan.engine->workspace + plan.engine->more_for_plan);
  check_workspace(*plan.graph, bindings, workspace, size);

  Work work{
      .name = std::string{"cuDNN "} + plan.kind + " engine" + std::to_string(plan.engine->number),
      .accesses = {},
      .compute = [graph = plan.graph, bindings, workspace, size] {
        if (size > 0) poison(workspace, size);
        compute(*graph, bindings);
        if (size > 0) poison(workspace, size);
      }};
  for (const auto& [id, address] : bindings.memory) {
    work.accesses.push_back({.begin = address,
                             .size = plan.graph->tensors().at(id).extent(),
                             .writes = plan.graph->is_written(id)});
  }
  if (size > 0) work.accesses.push_back({.begin = workspace, .size = size, .writes = true});
  return {.stream = stream, .work = std::move(work)};
}

}  // namespace
}  // namespace spillway::emulated

using namespace spillway::emulated;

extern "C" {

// The functions that return texts and the version neither fail nor use the device.

size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "an unknown status of cuDNN";
  }
}

void cudnnGetLastErrorString(char* message, size_t max_size) {
  if (message == nullptr || max_size == 0) return;
  const std::string text = std::exchange(last_error(), {}).substr(0, max_size - 1);
  std::memcpy(message, text.c_str(), text.size() + 1);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return serve(
      "cudnnCreate",
      [&](Library& library) {
        require(handle != nullptr, "there is no place for the handle");
        *handle = library.add_handle();
      },
      CUDNN_STATUS_NOT_INITIALIZED);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return release("cudnnDestroy", [&](Library& library) { library.erase(handle); });
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return serve("cudnnSetStream", [&](Library& library) { library.stream_of(handle) = stream; });
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  return serve("cudnnBackendCreateDescriptor", [&](Library& library) {
    require(descriptor != nullptr, "there is no place for the descriptor");
    (void)rules_of(type);
    *descriptor = library.add(type);
  });
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return release("cudnnBackendDestroyDescriptor",
                 [&](Library& library) { library.erase(descriptor); });
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  return serve("cudnnBackendSetAttribute", [&](Library& library) {
    Descriptor& d = *library.find(descriptor);
    require(!d.is_final, text_of(d.type) + " is changed after it was finalized");
    const AttributeRule& rule = rule_for(d, name, type);
    require(rule.use != Use::kResult, "an attribute is set that is a result");
    require(count >= rule.least && count <= rule.most && values != nullptr,
            "attribute " + std::to_string(static_cast<int>(name)) + " has " +
                std::to_string(count) + " values");
    const auto size = static_cast<std::size_t>(count);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      set_attribute(library, d, name, type, {},
                    {static_cast<const cudnnBackendDescriptor_t*>(values), size});
    } else {
      set_attribute(library, d, name, type,
                    {static_cast<const char*>(values), size * value_bytes(type)}, {});
    }
  });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return serve("cudnnBackendFinalize", [&](Library& library) {
    Descriptor& d = *library.find(descriptor);
    require(!d.is_final, text_of(d.type) + " is finalized twice");
    finalize(d);
  });
}

// NOLINTNEXTLINE(misc-misplaced-const): cuDNN declares it like this
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room,
                                       int64_t* count, void* values) {
  return serve("cudnnBackendGetAttribute", [&](Library& library) {
    const Descriptor& d = *library.find_final(descriptor);
    require_alive(d);
    (void)rule_for(d, name, type);
    require(room >= 0 && (room == 0 || values != nullptr), "there is no place for the values");
    get_attribute(library, d, name, {.room = room, .count = count, .values = values});
  });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  constexpr const char* kName = "cudnnBackendExecute";
  constexpr cudnnStatus_t kFailure = CUDNN_STATUS_EXECUTION_FAILED;
  if (const int error = begin_call(kName); error != 0) return refuse_device(error, kName, kFailure);
  return run_body(kName, [&] {
    Library& library = Library::get();
    std::unique_lock lock{library.mutex};
    Launch launch = make_launch(library, handle, plan, pack);
    lock.unlock();  // the work may run at once
    const int error = enqueue(launch.stream, std::move(launch.work));
    return error == 0 ? CUDNN_STATUS_SUCCESS : refuse_device(error, kName, kFailure);
  });
}

}  // extern "C"
