#include "tests/src/ranks/communicator_contract.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/ranks/agreement.h"
#include "src/ranks/collectives.h"
#include "src/ranks/tree_reduction.h"
#include "tests/refusal.h"
#include "tests/src/ranks/micro_batch_numbers.h"
#include "um/error.h"

namespace spillway::testing {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error{what};
}

// Requires that a property holds for number `index`.
void require(bool holds, const char* what, std::size_t index) {
  if (!holds) throw std::runtime_error{what + std::string{": number "} + std::to_string(index)};
}

// Returns byte i of the message from `from` to `to`.
std::byte said(std::size_t from, std::size_t to, std::size_t i) {
  return static_cast<std::byte>(from * 31 + to * 7 + i * 3 + i / 251);
}

void broadcasts(Communicator& communicator) {
  for (std::size_t root = 0; root < communicator.size(); ++root) {
    for (const std::size_t size : {0, 1, 16384, 16385, 1'000'003}) {
      std::vector<std::byte> bytes(size);
      for (std::size_t i = 0; i < size; ++i) {
        if (communicator.rank() == root) bytes[i] = said(root, 0, i);
      }
      communicator.broadcast(bytes, root);
      for (std::size_t i = 0; i < size; ++i) {
        require(bytes[i] == said(root, 0, i), "another byte", i);
      }
    }
  }
}

// Returns 0 for some pairs of ranks, and another size up to more than 1 MB for each other pair.
std::size_t size_between(std::size_t from, std::size_t to) {
  return (from + to) % 3 == 0 ? 0 : (from * 5 + to) * 100'003 + 1;
}

void exchanges_uneven_pieces(Communicator& communicator) {
  std::vector<std::vector<std::byte>> sent(communicator.size());
  std::vector<std::vector<std::byte>> received(communicator.size());
  std::vector<std::span<const std::byte>> sends;
  std::vector<std::span<std::byte>> receives;
  for (std::size_t r = 0; r < communicator.size(); ++r) {
    sent[r].resize(size_between(communicator.rank(), r));
    for (std::size_t i = 0; i < sent[r].size(); ++i) sent[r][i] = said(communicator.rank(), r, i);
    received[r].resize(size_between(r, communicator.rank()));
    sends.emplace_back(sent[r]);
    receives.emplace_back(received[r]);
  }
  communicator.exchange(sends, receives);
  for (std::size_t r = 0; r < communicator.size(); ++r) {
    for (std::size_t i = 0; i < received[r].size(); ++i) {
      require(received[r][i] == said(r, communicator.rank(), i), "another byte", i);
    }
  }
}

// Sums integers, which are exact in any order.
void sums(Communicator& communicator) {
  for (const std::size_t n : {0, 1, 5, 100'000}) {
    std::vector<float> numbers(n);
    for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<float>(i + communicator.rank());
    communicator.sum(numbers);
    const std::size_t ranks = communicator.size();
    for (std::size_t i = 0; i < n; ++i) {
      require(numbers[i] == static_cast<float>(ranks * i + ranks * (ranks - 1) / 2), "another sum",
              i);
    }
  }
}

void gathers_texts(Communicator& communicator) {
  const auto text_of = [](std::size_t rank) { return std::string(rank * rank * 100, 'a'); };
  const std::vector<std::string> texts =
      all_gather_texts(communicator, text_of(communicator.rank()));
  require(texts.size() == communicator.size(), "a text of each rank");
  for (std::size_t r = 0; r < texts.size(); ++r) require(texts[r] == text_of(r), "the same text");
}

void broadcasts_texts(Communicator& communicator) {
  const std::vector<std::string> of_rank_zero{"", "flags", std::string(20'000, 'a')};
  std::vector<std::string> texts;
  if (communicator.rank() == 0) texts = of_rank_zero;
  broadcast(communicator, texts);
  require(texts == of_rank_zero, "the texts of rank zero");
  texts.resize(communicator.rank());
  const auto lists = all_gather_lists(communicator, texts);
  require(lists.size() == communicator.size(), "a list of each rank");
  for (std::size_t r = 0; r < lists.size(); ++r) require(lists[r].size() == r, "the same list");
}

// All ranks get the sentence of rank zero's failure, and can continue afterwards.
void fails_on_rank_zero(Communicator& communicator) {
  bool has_followed = communicator.rank() == 0;
  const std::string sentence = test::refusal([&] {
    on_rank_zero(
        communicator, [] { throw um::Error{"the disk is full"}; }, [&] { has_followed = true; });
    return true;
  });
  require(sentence == "the disk is full", sentence);
  require(has_followed, "other ranks have work of their own");
}

void tells_places(Communicator& communicator) {
  const std::vector<std::string> nodes = all_gather_texts(communicator, communicator.node());
  require(nodes == communicator.nodes(), "nodes by rank");
  std::size_t before = 0;
  std::size_t all = 0;
  for (std::size_t r = 0; r < nodes.size(); ++r) {
    if (nodes[r] != communicator.node()) continue;
    ++all;
    if (r < communicator.rank()) ++before;
  }
  require(communicator.rank_on_node() == before, "ranks of a node in order");
  require(communicator.ranks_on_node() == all, "as many ranks as are on the node");
}

void agrees(Communicator& communicator) {
  const std::vector<NamedText> texts = {{"flags", "--net lenet"}, {"threads", ""}};
  expect_agreement(communicator, texts);
}

// All ranks get the same error, and can continue afterwards.
void disagrees(Communicator& communicator) {
  if (communicator.size() == 1) return;
  const bool is_last = communicator.rank() + 1 == communicator.size();
  const std::vector<NamedText> texts = {{"data", "digits"}, {"threads", is_last ? "2" : "1"}};
  const std::string sentence = test::refusal([&] {
    expect_agreement(communicator, texts);
    return true;
  });
  require(sentence.find("the ranks differ in threads: rank") == 0, sentence);
  require(sentence.find("data") == std::string::npos, sentence);
  for (const std::string& other : all_gather_texts(communicator, sentence)) {
    require(other == sentence, "another sentence: " + other);
  }
}

// Compares with the sums of micro-batches on a single rank, one after the other, with a stack.
void reduces(Communicator& communicator, std::size_t micro_batches, std::size_t n) {
  const std::vector<float> expected = tree_sum(micro_batches, n);
  const TreeReduction reduction{communicator, micro_batches};
  std::vector<std::byte> scratch(reduction.scratch_size(n).count());
  std::vector<std::vector<float>> sums =
      range_sums(reduction.tree(), reduction.own_micro_batches(), n);
  std::vector<std::span<const float>> nodes(sums.begin(), sums.end());
  const std::string size = std::to_string(micro_batches) + " micro-batches of " + std::to_string(n);

  std::vector<float> apart(n);
  reduction.all_reduce(nodes, apart, scratch);
  require(same_bits(apart, expected), size + ": other bits");

  const NumberSlice own = reduction.own_slice(n);
  std::vector<float> sliced(n);
  const std::span<float> slice = std::span{sliced}.subspan(own.first, own.count);
  reduction.reduce_scatter(nodes, n, slice, scratch);
  reduction.all_gather(sliced);
  require(same_bits(sliced, expected), size + ": other bits of slices");

  std::vector<float> fast(n);
  reduction.fast_all_reduce(nodes, fast);
  for (std::size_t i = 0; i < n; ++i) {  // numbers are in [-1, 1]
    require(std::abs(fast[i] - expected[i]) <=
                1e-6F * static_cast<float>(micro_batches * micro_batches),
            "another fast sum", i);
  }
  std::vector<float>& in_place = sums.empty() ? apart : sums[0];
  reduction.all_reduce(nodes, in_place, scratch);
  require(same_bits(in_place, expected), size + ": other bits in place");
}

void reduces_by_the_tree(Communicator& communicator) {
  for (const std::size_t micro_batches : {1, 2, 3, 4, 7, 8, 13, 16}) {
    for (const std::size_t n : {0, 1, 17, 1000}) reduces(communicator, micro_batches, n);
  }
}

// Uses slices of more than one piece.
void reduces_many_numbers(Communicator& communicator) { reduces(communicator, 5, 1'100'003); }

constexpr std::array<Promise, 11> kContract = {{
    {"broadcasts", broadcasts},
    {"exchanges_uneven_pieces", exchanges_uneven_pieces},
    {"sums", sums},
    {"gathers_texts", gathers_texts},
    {"broadcasts_texts", broadcasts_texts},
    {"fails_on_rank_zero", fails_on_rank_zero},
    {"tells_places", tells_places},
    {"agrees", agrees},
    {"disagrees", disagrees},
    {"reduces_by_the_tree", reduces_by_the_tree},
    {"reduces_many_numbers", reduces_many_numbers},
}};

}  // namespace

std::span<const Promise> communicator_contract() { return kContract; }

}  // namespace spillway::testing
