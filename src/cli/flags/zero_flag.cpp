#include "src/cli/flags/zero_flag.h"

#include <CLI/CLI.hpp>

namespace spillway::cli {

CLI::Option* ZeroFlag::add_to(CLI::App& app, const std::string& group) {
  return app
      .add_option(
          "--zero", stage,
          "1: each rank keeps a slice of the optimizer's numbers and updates that slice of "
          "the weights, which ranks then exchange (ZeRO, stage 1): the results are the same "
          "bits. As much is sent as without, but half as much again with --clip-norm or "
          "--reduction fastest. 0: every rank keeps all of them")
      ->check(CLI::IsMember({std::size_t{0}, std::size_t{1}}))
      ->type_name("STAGE")
      ->capture_default_str()
      ->group(group);
}

}  // namespace spillway::cli
