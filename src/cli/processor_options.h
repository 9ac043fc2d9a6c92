#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <string>

#include "src/host/host_backend.h"
#include "src/processor.h"

namespace spillway::cli {

/// The flags that say on what to run: --device, --threads.
struct ProcessorOptions {
  std::string device = "auto";
  int threads = 0;  ///< 0: one for each processor this process may use

  void add_to(CLI::App& app);
  /// --threads alone: what sizes on the host depend on.
  void add_threads_to(CLI::App& app);

  /// Throws: um::Error when the device is not there, or not with so many threads.
  [[nodiscard]] Processor open() const;
  /// The host's kernels alone: enough for the sizes of tensors. Throws: um::Error when OpenMP will
  /// not give so many threads.
  [[nodiscard]] std::unique_ptr<host::HostBackend> make_host_backend() const;

 private:
  [[nodiscard]] std::size_t thread_count() const;
};

}  // namespace spillway::cli
