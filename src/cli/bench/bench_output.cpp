#include "src/cli/bench/bench_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/tell.h"

namespace spillway::cli {
namespace {

// Of the host, which pages in software; nothing on a GPU.
std::optional<std::string> paging_of(const um::Device& device, const std::string& wanted) {
  const std::vector<um::Capability> all = device.capabilities();
  const auto uffd = std::ranges::find(all, "uffd_move", &um::Capability::name);
  if (uffd == all.end()) return std::nullopt;
  if (wanted != "auto") return wanted;
  return uffd->available ? "uffd" : "memfd";
}

}  // namespace

BenchMachine bench_machine(const um::Device& device, const MemoryFlags& memory) {
  const std::optional<std::string> paging = paging_of(device, memory.paging);
  return find_bench_machine(paging ? "host" : device.name(), paging);
}

BenchOutput::BenchOutput(std::string bench, BenchMachine machine, std::string path)
    : path_{std::move(path)} {
  expect_writable(path_);
  expect_replaceable(path_, bench, machine);
  file_.bench = std::move(bench);
  file_.machine = std::move(machine);
  file_.begin = std::chrono::system_clock::now();
}

void BenchOutput::print_heading() const {
  if (!is_for_people()) return;
  fmt::print("bench {} on {} (load {:.2f})\n", file_.bench, to_string(file_.machine),
             file_.machine.load);
}

void BenchOutput::write(nlohmann::json options, nlohmann::json rows) {
  if (path_.empty()) return;
  // A bench that was stopped before its first row has nothing that is worth an older file.
  std::error_code ignored;
  if (rows.empty() && path_ != "-" && std::filesystem::exists(path_, ignored)) {
    tell("nothing was measured: {} stays as it was\n", path_);
    return;
  }
  file_.took = std::chrono::steady_clock::now() - begin_;
  file_.options = std::move(options);
  file_.rows = std::move(rows);
  prefetch::write_json(to_json(file_), path_);
}

}  // namespace spillway::cli
