#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "src/processor.h"

namespace spillway::cli {

/// The flags that say on what to run: --device, --threads.
struct ProcessorOptions {
  std::string device = "auto";
  int threads = 0;  ///< 0: one for each processor this process may use

  void add_to(CLI::App& app);

  /// Throws: um::Error when the device is not there, or not with so many threads.
  [[nodiscard]] Processor open() const;
};

}  // namespace spillway::cli
