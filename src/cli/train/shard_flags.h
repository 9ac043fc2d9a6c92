#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/flags/bucket_flag.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/zero_flag.h"
#include "src/ranks/communicator.h"
#include "src/ranks/thread_communicator.h"
#include "src/train/parts/rank_training.h"

namespace CLI {
class App;
}  // namespace CLI

namespace spillway::cli {

/// The flags of a data-parallel training: the ranks that a launcher started, and the shards of a
/// batch that they train.
class ShardFlags {
 public:
  void add_to(CLI::App& app);

  /// A training that goes on has the shards of its checkpoint. Throws: um::Error where others are
  /// given, or there were none.
  void restore(std::optional<std::size_t> kept, const std::string& folder);

  /// Makes `device` this rank's, device_of_rank(). Throws likewise. Requires: join().
  void choose_device(std::string& device) const;

  /// Joins the other ranks, where there are some. To be called once, before anything that all of
  /// them would print. Throws: um::Error, one sentence for the user.
  void join(std::size_t batch);

  [[nodiscard]] Communicator* communicator() const { return communicator_.get(); }
  [[nodiscard]] bool are_used() const { return communicator_ != nullptr; }
  /// Of a training on `device`, of choose_device(), whose command line was `arguments`.
  [[nodiscard]] RankOptions options(const std::string& arguments, const std::string& device) const;
  /// Threads of the kernels, where nobody asks for a number: this rank's share of the processors
  /// that it may use. All ranks call it.
  [[nodiscard]] std::size_t usual_threads() const;

 private:
  [[nodiscard]] bool are_wanted() const { return !ranks_.empty() || shards_ > 0; }
  [[nodiscard]] CommunicatorOptions limits() const;
  [[nodiscard]] std::unique_ptr<Communicator> open();
  void expect_used() const;

  std::string ranks_;  // empty: not given
  std::size_t shards_ = 0;
  BucketFlag bucket_;
  std::string reduction_ = "tree";
  ZeroFlag zero_;
  std::string time_limit_ = "300s";
  std::vector<const CLI::Option*> of_shards_;      // of no use without
  std::vector<const CLI::Option*> between_ranks_;  // of no use to one
  ThreadRanks alone_{1};                           // of a process that has no other rank
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace spillway::cli
