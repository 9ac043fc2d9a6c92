#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/rank_flags.h"
#include "src/ranks/communicator.h"
#include "src/train/data_parallel/rank_options.h"

namespace spillway::cli {

/// Flags of a data-parallel training: the ranks that a launcher started, and the shards of a batch.
class ShardFlags {
 public:
  void add_to(CLI::App& app);

  /// A resumed training has its checkpoint's shards. Throws: um::Error when other shards are given,
  /// or the checkpoint has none.
  void restore(std::optional<std::size_t> kept, const std::string& folder);

  /// Joins the other ranks, if there are any. Call once, before anything that every rank would
  /// print. Throws: um::Error, one sentence for the user.
  void join(std::size_t batch);

  [[nodiscard]] Communicator& communicator() const {
    return mpi_ != nullptr ? *mpi_ : self_communicator();
  }
  /// Makes `device` this rank's share where batches are sharded: device_of_rank(), and unless the
  /// number of threads is given, as many as it has processors of its own. All ranks call it.
  /// Requires: join(). Throws: um::Error.
  void choose_share(DeviceFlags& device) const;
  /// Returns the options for a training on `device`, from choose_share(), with the command line
  /// `arguments`.
  [[nodiscard]] RankOptions options(const std::string& arguments, const std::string& device,
                                    bool cuts_batches) const;

 private:
  [[nodiscard]] CommunicatorOptions limits() const;
  [[nodiscard]] std::unique_ptr<Communicator> open();
  void expect_used() const;
  [[nodiscard]] std::size_t own_processors() const;

  std::string ranks_;       // empty: not given
  std::size_t shards_ = 0;  // 0: the batch is not sharded
  BucketFlag bucket_;
  std::string reduction_ = "tree";
  ZeroFlag zero_;
  std::string time_limit_ = "300s";
  std::vector<const CLI::Option*> of_shards_;      // flags that need shards
  std::vector<const CLI::Option*> between_ranks_;  // flags that need several ranks
  std::unique_ptr<Communicator> mpi_;              // null: no launcher started other ranks
};

}  // namespace spillway::cli
