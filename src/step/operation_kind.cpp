#include "src/step/operation_kind.h"

#include <type_traits>
#include <variant>

namespace spillway {
namespace {

using prefetch::TaskKind;

// Of forward operations; kOther also where there is no kind.
struct Kind {
  TaskKind operator()(const ConvolutionForward& /*op*/) const { return TaskKind::kConvolution; }
  TaskKind operator()(const TransposedConvolutionForward& /*op*/) const {
    return TaskKind::kConvolution;
  }
  TaskKind operator()(const LinearForward& /*op*/) const { return TaskKind::kLinear; }
  TaskKind operator()(const PoolForward& /*op*/) const { return TaskKind::kPool; }
  TaskKind operator()(const ReluForward& /*op*/) const { return TaskKind::kActivation; }
  TaskKind operator()(const BatchNormForward& /*op*/) const { return TaskKind::kNormalization; }
  TaskKind operator()(const LrnForward& /*op*/) const { return TaskKind::kNormalization; }
  TaskKind operator()(const DropoutForward& /*op*/) const { return TaskKind::kDropout; }
  TaskKind operator()(const AddForward& /*op*/) const { return TaskKind::kJoin; }
  TaskKind operator()(const ConcatForward& /*op*/) const { return TaskKind::kJoin; }
  // As cheap, and from fewer pixels.
  TaskKind operator()(const CropForward& /*op*/) const { return TaskKind::kPool; }
  template <class Op>
  TaskKind operator()(const Op& /*op*/) const {
    return TaskKind::kOther;
  }
};

}  // namespace

TaskKind kind_of(const Operation& operation) { return std::visit(Kind{}, operation); }

bool is_recomputable(const Operation& operation) {
  return kind_of(operation) != TaskKind::kOther;  // exactly the forward operations have a kind
}

}  // namespace spillway
