#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/flags/cli11.h"
#include "src/cli/flags/rank_flags.h"
#include "src/ranks/communicator.h"
#include "src/ranks/thread_communicator.h"
#include "src/train/parts/rank_training.h"

namespace spillway::cli {

/// Flags of a data-parallel training: the ranks that a launcher started, and the shards of a batch.
class ShardFlags {
 public:
  void add_to(CLI::App& app);

  /// A resumed training has its checkpoint's shards. Throws: um::Error when other shards are given,
  /// or the checkpoint has none.
  void restore(std::optional<std::size_t> kept, const std::string& folder);

  /// Makes `device` this rank's device, device_of_rank(). Throws: um::Error. Requires: join().
  void choose_device(std::string& device) const;

  /// Joins the other ranks, if there are any. Call once, before anything that every rank would
  /// print. Throws: um::Error, one sentence for the user.
  void join(std::size_t batch);

  [[nodiscard]] Communicator* communicator() const { return communicator_.get(); }
  [[nodiscard]] bool are_used() const { return communicator_ != nullptr; }
  /// Returns the options for a training on `device`, from choose_device(), with the command line
  /// `arguments`.
  [[nodiscard]] RankOptions options(const std::string& arguments, const std::string& device) const;
  /// Default number of kernel threads: this rank's share of the processors that it may use.
  /// Collective: all ranks call it.
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
  std::vector<const CLI::Option*> of_shards_;      // flags that need shards
  std::vector<const CLI::Option*> between_ranks_;  // flags that need several ranks
  ThreadRanks alone_{1};                           // for a process without other ranks
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace spillway::cli
