#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/ranks/communicator.h"

namespace spillway {

/// Warnings of all ranks. Rank zero alone has a terminal.
///
/// Thread safety: none.
class RankWarnings {
 public:
  /// `communicator` must outlive it.
  explicit RankWarnings(Communicator& communicator) : communicator_{communicator} {}

  /// Adds a warning of this rank; on rank zero one that the user has heard.
  void add(const std::string& sentence);
  /// Whether this rank has something for rank zero.
  [[nodiscard]] bool are_there() const { return !untold_.empty(); }
  /// Returns, on rank zero, the new warnings of the others, each once and with its rank. All ranks
  /// call it. Throws: what Communicator throws.
  [[nodiscard]] std::vector<std::string> gather();

 private:
  Communicator& communicator_;
  std::vector<std::string> untold_;
  std::set<std::string> told_;  // on rank zero
};

}  // namespace spillway
