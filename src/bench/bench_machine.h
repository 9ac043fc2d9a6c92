#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "um/bytes.h"

namespace spillway {

/// On what a bench measures.
struct BenchMachine {
  std::string processor;  ///< "AMD EPYC 9754", or "unknown processor"
  std::size_t processors = 1;
  um::Bytes memory;
  std::string kernel;                 ///< release: "6.18.1"
  std::string device;                 ///< "host", or "cuda:0 NVIDIA H100"
  std::optional<std::string> paging;  ///< "uffd" or "memfd"; nothing where it does not matter
  double load = 0;                    ///< others' work when the bench began, averaged over a minute

  /// Files with different ids may not stand in one table: 12 digits of a SHA-256 over processor,
  /// processors, memory, kernel and device.
  [[nodiscard]] std::string id() const;
};

/// This machine, now. `root` is the folder that holds proc.
[[nodiscard]] BenchMachine find_bench_machine(std::string device, std::optional<std::string> paging,
                                              const std::filesystem::path& root = "/");

/// {"id", "processor", "processors", "memory_bytes", "kernel", "device", "paging",
/// "load_at_start"}
[[nodiscard]] nlohmann::json to_json(const BenchMachine& machine);

/// For people: "AMD EPYC 9754, 2 processors, 23.5 GiB, Linux 6.18.1, host".
[[nodiscard]] std::string to_string(const BenchMachine& machine);

}  // namespace spillway
