#pragma once

#include <cstddef>
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

/// The products of a chunk of so many tokens, by the table in the tensors' type. Each call's
/// `scratchpad` has scratchpad() bytes.
class ChunkProducts {
 public:
  /// With `adds` the table's gradient is added to what is there.
  ChunkProducts(const Machine& machine, const LogitChunks& chunks, std::size_t tokens, bool adds);

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
  Call dtable_;
  Call dx_;
};

/// Of the first chunk, of those between, and of the last; of a first one alone where there is no
/// other.
[[nodiscard]] std::vector<ChunkProducts> products_of(const Machine& machine,
                                                     const LogitChunks& chunks);

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
