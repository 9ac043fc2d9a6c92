#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "src/ranks/thread_communicator.h"

namespace spillway::testing {

/// Runs `work` on each rank of a group, each in a thread of its own. Returns the errors by rank;
/// empty for ranks without one.
[[nodiscard]] inline std::vector<std::string> on_ranks(
    ThreadRanks& group, const std::function<void(Communicator&)>& work) {
  std::vector<std::string> errors(group.ranks());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < group.ranks(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(*group.end(rank));
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

/// Returns the result of on_ranks() if all ranks succeed.
[[nodiscard]] inline std::vector<std::string> no_errors(const ThreadRanks& group) {
  return std::vector<std::string>(group.ranks());
}

}  // namespace spillway::testing
