#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nets/shape.h"
#include "src/onnx/graph_reader.h"
#include "src/onnx/onnx_model.h"

namespace spillway {

/// How the graph holds a value: (batch, C H W) or (batch, C, H, W).
enum class ValueForm : std::uint8_t { kVector, kImage };

/// What `node`, a Reshape, makes of a batch of values `shape`. Nothing where it is neither a vector
/// of each image nor the image that it was, or its target is no constant.
[[nodiscard]] std::optional<ValueForm> reshaped_form(const GraphReader& graph, const OnnxNode& node,
                                                     const nets::Shape& shape);

/// Whether `axes` of (batch, C, H, W), from the front or, below 0, from the end, are H and W.
[[nodiscard]] bool are_height_and_width(std::vector<std::int64_t> axes);

/// Whether `node`, a Softmax or LogSoftmax of ONNX's operators of version `operators`, goes over
/// the channels of `shape` at each place. Before version 13 it goes over its axis and all behind.
[[nodiscard]] bool is_over_channels(const OnnxNode& node, std::int64_t operators, ValueForm form,
                                    const nets::Shape& shape);

}  // namespace spillway
