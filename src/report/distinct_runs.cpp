#include "src/report/distinct_runs.h"

#include <cstdint>
#include <set>
#include <string>
#include <tuple>

#include "src/report/comparison.h"

namespace spillway {
namespace {

using nlohmann::json;

// What runs differ in; the last but one is the budget, the last why it failed.
using Run =
    std::tuple<std::string, std::uint64_t, std::uint64_t, std::string, std::uint64_t, std::string>;

Run run_of(const json& row) {
  const std::string label = strategy_label(row);
  const std::uint64_t budget =
      label == "resident" ? 0 : row.at("budget_bytes").get<std::uint64_t>();
  const auto failed = row.find("failed");
  return {row.at("net"),
          row.at("image_size"),
          row.at("batch"),
          label,
          budget,
          failed != row.end() && failed->is_string() ? failed->get<std::string>() : ""};
}

}  // namespace

std::vector<std::size_t> distinct_runs(const json& rows) {
  std::vector<std::size_t> distinct;
  std::set<Run> seen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (seen.insert(run_of(rows[i])).second) distinct.push_back(i);
  }
  return distinct;
}

}  // namespace spillway
