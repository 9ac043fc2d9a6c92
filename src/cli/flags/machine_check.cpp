#include "src/cli/flags/machine_check.h"

#include <filesystem>
#include <system_error>

#include "prefetch/files/machine.h"
#include "src/cli/flags/complaint.h"

namespace spillway::cli {

std::string check_machine(const std::string& name_or_path) {
  std::error_code ignored;
  if (std::filesystem::exists(name_or_path, ignored)) return {};
  return complaint_of([&] { static_cast<void>(prefetch::find_machine(name_or_path)); });
}

}  // namespace spillway::cli
