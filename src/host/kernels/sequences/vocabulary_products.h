#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/host/kernels/sequences/token_rows.h"
#include "src/host/layout/host_kernel.h"
#include "src/ops/operation.h"

namespace spillway::host {

/// What one token adds to the result of a loss over a vocabulary.
struct TokenLoss {
  float loss;
  float correct;
};

/// How the tokens of a batch are cut into chunks, all about as large, whose logits are there at
/// once.
struct LogitChunks {
  LogitChunks(const Layout& layout, const VocabularyGeometry& geometry);

  TokenRows rows;
  std::size_t vocabulary;
  std::size_t each;  ///< tokens of a chunk, but the last
};

/// What is made of a chunk: logits alone, or also gradients, those of the table being the first
/// ones or added to what is there.
enum class ChunkPart : std::uint8_t { kLogits, kFirstGradients, kAddedGradients };

/// The products of a chunk of so many tokens, by the table in the tensors' type. Each call's
/// `scratchpad` has scratchpad() bytes. With kLogits there are no gradients to ask for.
class ChunkProducts {
 public:
  ChunkProducts(const Machine& machine, const LogitChunks& chunks, std::size_t tokens,
                ChunkPart part);

  [[nodiscard]] um::Bytes scratchpad() const { return scratchpad_; }

  /// logits = x table^T
  void find_logits(std::byte* x, std::byte* table, std::byte* logits, std::byte* scratchpad);
  /// dtable = dlogits^T x, or += that
  void find_dtable(std::byte* dlogits, std::byte* x, std::byte* dtable, std::byte* scratchpad);
  /// dx = dlogits table
  void find_dx(std::byte* dlogits, std::byte* table, std::byte* dx, std::byte* scratchpad);

 private:
  Call make(const dnnl::engine& engine, const Desc& a, const Desc& b, const Desc& c, bool adds);

  um::Bytes scratchpad_{};  // first: make() raises it
  Call logits_;
  std::optional<Call> dtable_;
  std::optional<Call> dx_;
};

/// Of the first chunk, of those between, and of the last; of a first one alone where there is no
/// other. Without gradients unless `trains`.
[[nodiscard]] std::vector<ChunkProducts> products_of(const Machine& machine,
                                                     const LogitChunks& chunks, bool trains);

/// Where in the workspace lie: with bfloat16 the table as such (at 0), a chunk's logits, what all
/// tokens add to the result, and room for the products; each at a multiple of 64 bytes.
struct VocabularyRoom {
  VocabularyRoom(const Machine& machine, const LogitChunks& chunks,
                 const std::vector<ChunkProducts>& products);

  um::Bytes logits;
  um::Bytes samples;
  um::Bytes scratchpad;
  um::Bytes end;
};

}  // namespace spillway::host
