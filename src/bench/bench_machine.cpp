#include "src/bench/bench_machine.h"

#include <sys/utsname.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <thread>
#include <utility>

#include "src/io/file_digest.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

// What follows "name : " in a file of proc; empty where it is not there.
std::string value_in(const fs::path& path, const std::string& name) {
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string{} : line.substr(begin);
  }
  return {};
}

std::string processor_in(const fs::path& root) {
  std::string name = value_in(root / "proc/cpuinfo", "model name");
  return name.empty() ? "unknown processor" : name;
}

// "MemTotal:  24000000 kB", where kB are 1024 bytes.
um::Bytes memory_in(const fs::path& root) {
  std::uint64_t kilobytes = 0;
  std::istringstream{value_in(root / "proc/meminfo", "MemTotal")} >> kilobytes;
  return kilobytes * um::Bytes{1024};
}

double load_in(const fs::path& root) {
  double load = 0;
  std::ifstream{root / "proc/loadavg"} >> load;
  return load;
}

std::string kernel_release() {
  utsname names{};
  return uname(&names) == 0 ? static_cast<const char*>(names.release) : "unknown";
}

}  // namespace

std::string BenchMachine::id() const {
  constexpr std::size_t kDigits = 12;
  Sha256 digest;
  const std::string facts = processor + '\n' + std::to_string(processors) + '\n' +
                            std::to_string(memory.count()) + '\n' + kernel + '\n' + device;
  digest.update(std::as_bytes(std::span{facts}));
  return digest.hex().substr(0, kDigits);
}

BenchMachine find_bench_machine(std::string device, std::optional<std::string> paging,
                                const fs::path& root) {
  return {.processor = processor_in(root),
          .processors = std::thread::hardware_concurrency(),
          .memory = memory_in(root),
          .kernel = kernel_release(),
          .device = std::move(device),
          .paging = std::move(paging),
          .load = load_in(root)};
}

nlohmann::json to_json(const BenchMachine& machine) {
  return {{"id", machine.id()},
          {"processor", machine.processor},
          {"processors", machine.processors},
          {"memory_bytes", machine.memory.count()},
          {"kernel", machine.kernel},
          {"device", machine.device},
          {"paging", machine.paging ? nlohmann::json(*machine.paging) : nlohmann::json()},
          {"load_at_start", machine.load}};
}

std::string to_string(const BenchMachine& machine) {
  return machine.processor + ", " + um::count_of(machine.processors, "processor") + ", " +
         um::to_string(machine.memory) + ", Linux " + machine.kernel + ", " + machine.device;
}

}  // namespace spillway
