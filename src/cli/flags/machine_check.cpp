#include "src/cli/flags/machine_check.h"

#include <filesystem>
#include <system_error>

#include "prefetch/files/machine.h"
#include "src/cli/flags/complaint.h"
#include "src/cli/flags/suggest_name.h"

namespace spillway::cli {

std::string check_machine(const std::string& name_or_path) {
  std::error_code ignored;
  if (std::filesystem::exists(name_or_path, ignored)) return {};
  std::string complaint =
      complaint_of([&] { static_cast<void>(prefetch::find_machine(name_or_path)); });
  if (complaint.empty()) return complaint;
  std::vector<std::string> names;
  for (const prefetch::Machine& machine : prefetch::built_in_machines()) {
    names.push_back(machine.name);
  }
  return suggest_name("machine", name_or_path, names, complaint);
}

}  // namespace spillway::cli
