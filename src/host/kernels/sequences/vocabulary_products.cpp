#include "src/host/kernels/sequences/vocabulary_products.h"

#include <algorithm>
#include <initializer_list>

namespace spillway::host {
namespace {

constexpr um::Bytes kAlignment{64};

um::Bytes aligned_bytes(const Layout& layout, std::initializer_list<std::size_t> sizes) {
  return um::round_up(um::Bytes{layout.dense_desc(sizes).get_size()}, kAlignment);
}

void run_product(Call& call, std::byte* a, std::byte* b, std::byte* c, std::byte* scratchpad) {
  call.run({{DNNL_ARG_SRC, a},
            {DNNL_ARG_WEIGHTS, b},
            {DNNL_ARG_DST, c},
            {DNNL_ARG_SCRATCHPAD, scratchpad}});
}

}  // namespace

LogitChunks::LogitChunks(const Layout& layout, const VocabularyGeometry& geometry)
    : rows{layout, geometry.x}, vocabulary{geometry.vocabulary} {
  constexpr std::size_t kLeast = 16;
  const std::size_t most = std::max(kVocabularyChunk / vocabulary, kLeast);
  const std::size_t count = (rows.count + most - 1) / most;
  each = (rows.count + count - 1) / count;
}

ChunkProducts::ChunkProducts(const Machine& machine, const LogitChunks& chunks, std::size_t tokens,
                             ChunkPart part)
    : logits_{make(machine.engine, machine.layout.dense_desc({tokens, chunks.rows.stride}),
                   transposed(machine.layout.dense_desc({chunks.vocabulary, chunks.rows.stride})),
                   machine.layout.dense_desc({tokens, chunks.vocabulary}), false)} {
  if (part == ChunkPart::kLogits) return;
  dtable_ = make(machine.engine, transposed(machine.layout.dense_desc({tokens, chunks.vocabulary})),
                 machine.layout.dense_desc({tokens, chunks.rows.stride}),
                 float_desc({chunks.vocabulary, chunks.rows.stride}, dnnl::memory::format_tag::ab),
                 part == ChunkPart::kAddedGradients);
  dx_ = make(machine.engine, machine.layout.dense_desc({tokens, chunks.vocabulary}),
             machine.layout.dense_desc({chunks.vocabulary, chunks.rows.stride}),
             machine.layout.dense_desc({tokens, chunks.rows.stride}), false);
}

Call ChunkProducts::make(const dnnl::engine& engine, const Desc& a, const Desc& b, const Desc& c,
                         bool adds) {
  const auto primitive = product(engine, a, b, c, adds);
  scratchpad_ = std::max(scratchpad_, scratchpad_bytes(primitive));
  return {engine,
          dnnl::matmul(primitive),
          {{DNNL_ARG_SRC, a},
           {DNNL_ARG_WEIGHTS, b},
           {DNNL_ARG_DST, c},
           {DNNL_ARG_SCRATCHPAD, primitive.scratchpad_desc()}}};
}

void ChunkProducts::find_logits(std::byte* x, std::byte* table, std::byte* logits,
                                std::byte* scratchpad) {
  run_product(logits_, x, table, logits, scratchpad);
}
void ChunkProducts::find_dtable(std::byte* dlogits, std::byte* x, std::byte* dtable,
                                std::byte* scratchpad) {
  run_product(dtable_.value(), dlogits, x, dtable, scratchpad);
}
void ChunkProducts::find_dx(std::byte* dlogits, std::byte* table, std::byte* dx,
                            std::byte* scratchpad) {
  run_product(dx_.value(), dlogits, table, dx, scratchpad);
}

std::vector<ChunkProducts> products_of(const Machine& machine, const LogitChunks& chunks,
                                       bool trains) {
  const ChunkPart first = trains ? ChunkPart::kFirstGradients : ChunkPart::kLogits;
  const ChunkPart later = trains ? ChunkPart::kAddedGradients : ChunkPart::kLogits;
  std::vector<ChunkProducts> products;
  products.emplace_back(machine, chunks, chunks.each, first);
  const std::size_t count = (chunks.rows.count + chunks.each - 1) / chunks.each;
  if (count == 1) return products;
  products.emplace_back(machine, chunks, chunks.each, later);
  products.emplace_back(machine, chunks, chunks.rows.count - (count - 1) * chunks.each, later);
  return products;
}

VocabularyRoom::VocabularyRoom(const Machine& machine, const LogitChunks& chunks,
                               const std::vector<ChunkProducts>& products) {
  if (machine.layout.is_bf16()) {
    logits = aligned_bytes(machine.layout, {chunks.vocabulary, chunks.rows.stride});
  }
  samples = logits + aligned_bytes(machine.layout, {chunks.each, chunks.vocabulary});
  scratchpad = samples + um::round_up(um::Bytes{chunks.rows.count * sizeof(TokenLoss)}, kAlignment);
  um::Bytes largest;
  for (const ChunkProducts& each : products) largest = std::max(largest, each.scratchpad());
  end = scratchpad + largest;
}

}  // namespace spillway::host
