#pragma once

#include <string>

#include "src/io/onnx/graph_writer.h"

namespace spillway {

/// Layers that are several of ONNX's operators 17. Each function writes one and returns the value
/// that it makes. Sequences are (batch, tokens, channels).

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
/// The logits. `table`: the name of the layer whose table it has; empty for its own.
[[nodiscard]] std::string write(const nets::VocabularyLoss& loss, const WrittenLayer& layer,
                                const std::string& table);
/// A linear layer on each token.
[[nodiscard]] std::string write_row_wise(const nets::Linear& linear, const WrittenLayer& layer);

}  // namespace spillway
