#include "src/train/parts/rank_training.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nets/text/network_file.h"
#include "src/io/file_digest.h"
#include "src/ranks/agreement.h"
#include "src/ranks/rank_names.h"
#include "src/train/parts/rank_messages.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

constexpr std::size_t kMostSamples = 64;
constexpr std::size_t kFewestSamples = 3;
constexpr std::size_t kMostNumbers = std::size_t{1} << 24U;  // of samples
constexpr std::size_t kDigits = 16;                          // of a digest, for people

// SHA-256 of samples that are spread over all, the first and the last among them, as the first
// epoch has them: of a large data set enough to tell another one, or other decoders, apart.
std::string sampled_sha256(const Dataset& set) {
  std::vector<float> image(set.image().elements());
  std::vector<std::int32_t> labels(labels_each(set));
  const std::size_t count =
      std::min(set.size(), std::clamp(kMostNumbers / image.size(), kFewestSamples, kMostSamples));
  Sha256 digest;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = count == 1 ? 0 : i * (set.size() - 1) / (count - 1);
    try {
      set.read(index, image);
      set.labels(index, labels);
    } catch (const um::Error&) {  // told when its turn comes, if it is not passed over
      std::ranges::fill(image, 0.F);
      std::ranges::fill(labels, -1);
    }
    digest.update(std::as_bytes(std::span{image}));
    digest.update(std::as_bytes(std::span{labels}));
  }
  return digest.hex();
}

std::string summary_of(const DatasetPair& data) {
  std::string text;
  for (const Dataset* const set : {data.train.get(), data.test.get()}) {
    if (set == nullptr) continue;
    text += (text.empty() ? "" : "; ") + set->name() + ", " + std::to_string(set->size()) +
            " samples, " + std::to_string(set->classes()) + " classes, content " +
            set->content_sha256().substr(0, kDigits) + ", samples " +
            sampled_sha256(*set).substr(0, kDigits);
  }
  return text;
}

std::string with_commas(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

ShardedBatch shard_batch(const RankOptions& options, std::size_t batch) {
  const Communicator& communicator = *options.communicator;
  if (options.shards == 0 || batch % options.shards != 0) {
    throw um::Error{"a batch of " + std::to_string(batch) + " cannot be cut into " +
                    std::to_string(options.shards) +
                    " equal shards; give --shards that divide --batch"};
  }
  if (options.shards < communicator.ranks()) {
    throw um::Error{"a batch in " + um::count_of(options.shards, "shard") + " leaves some of " +
                    std::to_string(communicator.ranks()) +
                    " ranks without work; give more --shards, or start fewer ranks"};
  }
  return {.batch = batch,
          .tree = ShardTree{options.shards},
          .own = shards_of_rank(options.shards, communicator.ranks(), communicator.rank()),
          .buckets = options.buckets,
          .division = options.divides_optimizer ? OptimizerDivision{.rank = communicator.rank(),
                                                                    .ranks = communicator.ranks()}
                                                : OptimizerDivision{}};
}

void expect_ranks_agree(const RankOptions& ranks, const nets::Network& network,
                        const DatasetPair& data, const ExecutionContext& context) {
  if (!ranks.are_used() || ranks.communicator->ranks() == 1) return;
  std::vector<NamedText> texts = ranks.agreement;
  texts.push_back({.name = "network", .text = nets::to_text(network)});
  texts.push_back({.name = "data",
                   .text = summary_of(data),
                   .advice = "copy the same data to the machines of all ranks"});
  texts.push_back({.name = "class names", .text = with_commas(data.class_names)});
  texts.push_back({.name = "threads", .text = std::to_string(context.threads)});
  expect_agreement(*ranks.communicator, texts);
  const std::array kernels{
      NamedText{.name = "kernels",  // whose text has the threads, too
                .text = context.backend->description(),
                .advice = "install the same libraries for all ranks; where processors differ, "
                          "ONEDNN_MAX_CPU_ISA=AVX2 in the environment of all has them use the same "
                          "instructions"}};
  expect_agreement(*ranks.communicator, kernels);
}

void expect_same_weights(const RankOptions& ranks, const std::string& name,
                         const std::string& sha256) {
  if (!ranks.are_used()) return;
  const std::array texts{NamedText{.name = name, .text = sha256}};
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

void RankWarnings::add(const std::string& sentence) {
  if (!ranks_.are_used()) return;
  if (is_first(ranks_.communicator)) {
    told_.insert(sentence);
  } else {
    untold_.push_back(sentence);
  }
}

std::vector<std::string> RankWarnings::gather() {
  if (!ranks_.are_used()) return {};
  const Communicator& communicator = *ranks_.communicator;
  const auto lists = gather_lists(*ranks_.communicator, std::exchange(untold_, {}));
  std::vector<std::string> sentences;
  if (!is_first(&communicator)) return sentences;
  for (std::size_t rank = 1; rank < lists.size(); ++rank) {
    const std::array<std::size_t, 1> who{rank};
    for (const std::string& sentence : lists[rank]) {
      if (!told_.insert(sentence).second) continue;
      sentences.push_back(rank_names(who, communicator.nodes()) + ": " + sentence);
    }
  }
  return sentences;
}

}  // namespace spillway
