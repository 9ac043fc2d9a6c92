#pragma once

#include "nets/network.h"
#include "src/io/onnx/graph_writer.h"
#include "src/io/onnx/onnx_model.h"

namespace spillway {

/// `network` as it predicts: batch norm by its running statistics, without dropout, auxiliary heads
/// and the loss. Its input is `image`, (batch, C, H, W), or `tokens`, (batch, tokens) of 64 bits;
/// its output `logits`, (batch, classes), (batch, classes, H, W) or (batch, tokens, vocabulary).
/// The batch may have any size. Throws: what `arrays` does.
[[nodiscard]] OnnxModel export_onnx(const nets::Network& network, const ArraySource& arrays);

}  // namespace spillway
