#include "src/train/parts/rank_agreement.h"

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "nets/text/network_text.h"
#include "src/files/file_digest.h"
#include "src/ranks/agreement.h"
#include "src/ranks/gather_values.h"
#include "src/train/parts/gather_lists.h"

namespace spillway {
namespace {

// Enough to tell one data set from another without reading all of it.
std::string summary_of(const DatasetPair& data) {
  std::string text;
  for (const Dataset* const set : {data.train.get(), data.test.get()}) {
    if (set == nullptr) continue;
    std::vector<float> image(set->image().elements());
    std::vector<std::int32_t> labels(labels_each(*set));
    text += set->name() + ", " + std::to_string(set->size()) + " samples, " +
            std::to_string(set->classes()) + " classes";
    for (const std::size_t index : {std::size_t{0}, set->size() / 2, set->size() - 1}) {
      set->show(index, 0, image, labels);  // which passes over what is broken
      text += ", " + sha256_of(std::as_bytes(std::span{image})).substr(0, 8);
    }
    text += "; ";
  }
  return text;
}

}  // namespace

void expect_ranks_agree(const RankOptions& ranks, const nets::Network& network,
                        const DatasetPair& data, std::size_t threads) {
  if (!ranks.are_used()) return;
  std::vector<NamedText> texts = ranks.agreement;
  texts.push_back({.name = "network", .text = nets::to_text(network)});
  texts.push_back({.name = "data", .text = summary_of(data)});
  texts.push_back({.name = "threads", .text = std::to_string(threads)});
  expect_agreement(*ranks.communicator, texts);
}

void expect_same_weights(const RankOptions& ranks, const std::string& sha256) {
  if (!ranks.are_used()) return;
  const std::array texts{NamedText{.name = "weights", .text = sha256}};
  expect_agreement(*ranks.communicator, texts);
}

bool is_stopped(const RankOptions& ranks, const std::stop_token& stop) {
  const bool own = stop.stop_requested();
  return ranks.are_used() ? any_rank(*ranks.communicator, own) : own;
}

std::size_t distinct_of_ranks(Communicator& communicator, const std::vector<std::string>& own) {
  std::set<std::string> all;
  for (const std::vector<std::string>& texts : gather_lists(communicator, own)) {
    all.insert(texts.begin(), texts.end());
  }
  return all.size();
}

}  // namespace spillway
