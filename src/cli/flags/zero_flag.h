#pragma once

#include <cstddef>
#include <string>

#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// The flag --zero: what is divided among ranks, by the stages of ZeRO.
struct ZeroFlag {
  std::size_t stage = 0;

  CLI::Option* add_to(CLI::App& app, const std::string& group);

  [[nodiscard]] bool divides_optimizer() const { return stage > 0; }
};

}  // namespace spillway::cli
