#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/rank_flags.h"
#include "src/ranks/communicator.h"
#include "src/train/data_parallel/rank_options.h"

namespace spillway::cli {

/// Flags of a training by several ranks, which a launcher started.
class LauncherFlags {
 public:
  void add_to(CLI::App& app);

  /// Joins the other ranks, if there are any. Call once, before anything that every rank would
  /// print. Throws: um::Error, one sentence for the user.
  void join();
  /// Returns the number of micro-batches of a batch for ranks where none is given.
  [[nodiscard]] static std::size_t usual_micro_batches(std::size_t batch);
  [[nodiscard]] bool are_given() const { return !ranks_.empty(); }

  [[nodiscard]] Communicator& communicator() const {
    return mpi_ != nullptr ? *mpi_ : self_communicator();
  }
  /// Makes `device` this rank's share where --ranks is given: device_of_rank(), and unless the
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

  std::string ranks_;  // empty: not given
  BucketFlag bucket_;
  std::string reduction_ = "tree";
  ZeroFlag zero_;
  std::string time_limit_ = "300s";
  std::vector<const CLI::Option*> between_ranks_;  // flags that need several ranks
  std::unique_ptr<Communicator> mpi_;              // null: no launcher started other ranks
};

}  // namespace spillway::cli
