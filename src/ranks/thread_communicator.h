#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/ranks/communicator.h"

namespace spillway {

/// Ranks that are threads of one process, for tests and programs without MPI. Each thread uses one
/// end. The group outlives its ends.
class ThreadRanks {
 public:
  /// Puts all ranks on one node.
  explicit ThreadRanks(std::size_t ranks, const CommunicatorOptions& options = {});
  /// Puts rank r on node `nodes[r]`.
  explicit ThreadRanks(std::vector<std::string> nodes, const CommunicatorOptions& options = {});
  ThreadRanks(const ThreadRanks&) = delete;
  ThreadRanks& operator=(const ThreadRanks&) = delete;
  ~ThreadRanks();

  [[nodiscard]] std::size_t ranks() const { return nodes_.size(); }
  /// Returns the end of a rank, for one thread. Requires: called once per rank.
  [[nodiscard]] std::unique_ptr<Communicator> end(std::size_t rank);

 private:
  class End;
  class Exchange;

  std::vector<std::string> nodes_;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace spillway
