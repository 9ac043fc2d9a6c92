#pragma once

#include <variant>

#include "src/ops/element_operations.h"
#include "src/ops/image_operations.h"
#include "src/ops/operation_row.h"
#include "src/ops/sequence_operations.h"
#include "src/ops/tensor.h"
#include "src/ops/training_operations.h"
#include "src/ops/weighted_operations.h"

namespace spillway {

/// Everything a backend can be asked to run. Each operation has a row in the table of operations:
/// operands by name, cost, and its OperationRow. A comment lists the operands in the order in which
/// a Kernel gets them: reads `->` writes. "(dx may be dy)": the two operands may be the same block.
/// All shapes are logical; `x` is a layer's input, `y` its output, `d...` a gradient.
using Operation = std::variant<
    LoadBatch, ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardWeights,
    TransposedConvolutionForward, TransposedConvolutionBackwardData,
    TransposedConvolutionBackwardWeights, BatchNormForward, BatchNormInference, BatchNormBackward,
    ReluForward, ReluBackward, GeluForward, GeluBackward, AddForward, AddGradients, PoolForward,
    PoolBackward, LrnForward, LrnBackward, ConcatForward, ConcatBackward, CropForward, CropBackward,
    LinearForward, LinearBackwardData, LinearBackwardWeights, DropoutForward, DropoutBackward,
    SoftmaxCrossEntropyTrain, SoftmaxCrossEntropyEvaluate, UpdateParameters, AverageParameters,
    TakeParameters, AccumulateGradients, AddSquares, ClipGradient, EmbeddingForward,
    EmbeddingBackward, PositionsForward, PositionsBackward, RowNormForward, RowNormBackward,
    SwigluForward, SwigluBackward, RotaryForward, RotaryBackward, AttentionForward,
    AttentionBackward, ImageTokensForward, ImageTokensBackward, FirstTokenForward,
    FirstTokenBackward, VocabularyLossTrain, VocabularyLossEvaluate, VocabularyLogits>;

/// Return the row and the cost of any operation.
[[nodiscard]] inline const OperationRow& row_of(const Operation& operation) {
  return std::visit([](const auto& op) -> const OperationRow& { return op.kRow; }, operation);
}
[[nodiscard]] inline OperationCost cost_of(const Operation& operation) {
  return std::visit([](const auto& op) { return op.cost(); }, operation);
}

/// Returns true if the operation works on parameters alone, which are floats in every precision.
[[nodiscard]] inline bool is_of_parameters(const Operation& operation) {
  return std::holds_alternative<UpdateParameters>(operation) ||
         std::holds_alternative<AverageParameters>(operation) ||
         std::holds_alternative<TakeParameters>(operation) ||
         std::holds_alternative<AccumulateGradients>(operation) ||
         std::holds_alternative<AddSquares>(operation) ||
         std::holds_alternative<ClipGradient>(operation);
}

}  // namespace spillway
