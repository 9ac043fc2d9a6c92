#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::cli {

/// A network, by the name or file that the user gives, at a batch size.
struct NetAtBatch {
  std::string net;
  std::size_t batch = 1;
  friend bool operator==(const NetAtBatch&, const NetAtBatch&) = default;
};

/// Reads "resnet18:16,resnet:2,2,2,2:8": names of families have colons and commas of their own.
/// Throws: um::Error that says what is none.
[[nodiscard]] std::vector<NetAtBatch> parse_nets(const std::string& text);

/// A check of CLI11's.
[[nodiscard]] std::string check_nets(const std::string& text);

}  // namespace spillway::cli
