#include "src/cli/bench/bench_nets.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "src/cli/flags/complaint.h"
#include "src/cli/flags/workload_flags.h"
#include "src/train/settings.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

// "resnet18:16" in its parts; nothing where no number follows the last colon.
std::optional<NetAtBatch> split(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::string_view number = text.substr(colon + 1);
  std::size_t batch = 0;
  const char* const end = number.data() + number.size();
  const auto [stop, status] = std::from_chars(number.data(), end, batch);
  if (status != std::errc{} || stop != end) return std::nullopt;
  if (kBatchRange.is_too_small(batch) || kBatchRange.is_too_large(batch)) return std::nullopt;
  return NetAtBatch{.net = std::string{text.substr(0, colon)}, .batch = batch};
}

[[noreturn]] void refuse(const std::string& text) {
  const std::optional<NetAtBatch> parts = split(text);
  throw um::Error{parts ? check_network(parts->net)
                        : "'" + text +
                              "' is no network at a batch: give NAME:BATCH, such as resnet18:16"};
}

}  // namespace

std::vector<NetAtBatch> parse_nets(const std::string& text) {
  std::vector<NetAtBatch> nets;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    std::size_t end = begin;
    std::optional<NetAtBatch> found;
    do {  // a comma may belong to the name
      end = text.find(',', end == begin ? begin : end + 1);
      found = split(std::string_view{text}.substr(begin, end - begin));
      if (found && !check_network(found->net).empty()) found.reset();
    } while (!found && end != std::string::npos);
    if (!found) refuse(text.substr(begin, text.find(',', begin) - begin));
    nets.push_back(*std::move(found));
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  return nets;
}

std::string check_nets(const std::string& text) {
  return complaint_of([&] { static_cast<void>(parse_nets(text)); });
}

}  // namespace spillway::cli
