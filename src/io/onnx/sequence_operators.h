#pragma once

#include <string>

#include "src/io/onnx/graph_writer.h"

namespace spillway {

/// Layers that take several of ONNX's operators, version 17. Each function writes one layer and
/// returns the name of its output. Sequences are (batch, tokens, channels).

[[nodiscard]] std::string write(const nets::Gelu& gelu, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::Crop& crop, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::Embedding& embedding, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::PositionEmbedding& embedding,
                                const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::RmsNorm& norm, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::Swiglu& swiglu, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::Rotary& rotary, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::Attention& attention, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::ImageTokens& tokens, const WrittenLayer& layer);
[[nodiscard]] std::string write(const nets::FirstToken& first, const WrittenLayer& layer);
/// Returns the logits. `table` is the layer that owns the embedding table; empty: this layer's own.
[[nodiscard]] std::string write(const nets::VocabularyLoss& loss, const WrittenLayer& layer,
                                const std::string& table);
/// Writes a linear layer that is applied to each token.
[[nodiscard]] std::string write_row_wise(const nets::Linear& linear, const WrittenLayer& layer);

}  // namespace spillway
