#pragma once

#include "nets/network.h"
#include "src/io/onnx/graph_writer.h"
#include "src/io/onnx/onnx_model.h"

namespace spillway {

/// Returns the model of `network` for inference: batch norm uses its running statistics; dropout,
/// auxiliary heads and the loss are left out. Its input is `image`, (batch, C, H, W), or `tokens`,
/// (batch, tokens), 64-bit integers. Its output is `logits`, (batch, classes), (batch, classes, H,
/// W) or (batch, tokens, vocabulary). The batch may have any size.
/// Throws: what `arrays` throws.
[[nodiscard]] OnnxModel export_onnx(const nets::Network& network, const ArraySource& arrays);

}  // namespace spillway
