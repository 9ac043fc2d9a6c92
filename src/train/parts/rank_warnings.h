#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/train/parts/rank_training.h"

namespace spillway {

/// What ranks but the first have to tell the user, who hears the first one alone.
///
/// Thread safety: none.
class RankWarnings {
 public:
  /// `ranks` must outlive it, and its communicator.
  explicit RankWarnings(const RankOptions& ranks) : ranks_{ranks} {}

  /// What this rank has told, or has to.
  void add(const std::string& sentence);
  /// Whether this rank has something for the first one.
  [[nodiscard]] bool are_there() const { return !untold_.empty(); }
  /// All ranks call it. Returns, on the first one, the new sentences of the others, each with its
  /// rank and once, whoever has it. Throws: what Communicator throws.
  [[nodiscard]] std::vector<std::string> gather();

 private:
  const RankOptions& ranks_;
  std::vector<std::string> untold_;
  std::set<std::string> told_;  // on the first rank
};

}  // namespace spillway
