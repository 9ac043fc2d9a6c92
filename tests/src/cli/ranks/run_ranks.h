#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"

namespace spillway::test {

/// `mpirun` with its own arguments, for so many ranks, also for root and on fewer processors.
[[nodiscard]] inline Arguments mpirun(std::size_t ranks, const Arguments& options = {}) {
  return {std::string{SPILLWAY_MPIRUN}, "--oversubscribe --allow-run-as-root",
          options.empty() ? Arguments{"--bind-to none"} : options, "-n", std::to_string(ranks)};
}

/// The program as so many ranks, run to their end.
[[nodiscard]] inline Outcome run_ranks(std::size_t ranks, const Arguments& arguments,
                                       const Arguments& options = {}) {
  return Program{arguments, {}, Program::Errors::kPipe, 0, mpirun(ranks, options)}.finish();
}

/// The program as two ranks on each of two nodes, between which there is such a link: see
/// tests/src/ranks/mpi/two_nodes. Its exit code is kNoNodes where they cannot be made.
[[nodiscard]] inline Outcome run_nodes(const std::string& link, const Arguments& arguments) {
  const Arguments root = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  const Arguments launcher = {"/usr/bin/timeout -k 10 100", std::string{SPILLWAY_TWO_NODES}, link,
                              std::string{SPILLWAY_MPIRUN}};  // which removes the nodes in any case
  return Program{arguments, root, Program::Errors::kPipe, 0, launcher}.finish();
}
constexpr int kNoNodes = 77;

/// LeNet on images that are drawn, small enough to take no time: the same bits wherever it runs.
[[nodiscard]] inline Arguments training_of_ranks(const Arguments& more = {}) {
  return {"train --net lenet --batch 12 --device host --threads 1 --conv-algorithm direct", more};
}

/// What must be the same for any number of ranks.
[[nodiscard]] inline std::string weights_of(const Outcome& outcome) {
  return summary_of(outcome).value("weights_sha256", "none");
}

}  // namespace spillway::test
