#include "src/cli/terminal/tell.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "um/bytes.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

std::atomic<bool> is_silent = false;

}  // namespace

void be_silent() noexcept { is_silent = true; }

void tell(std::string_view text) noexcept {
  if (is_silent) return;
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
}

// Does as gnulib's stdopen(): opens standard input only for writing and the others only for
// reading. Their use fails as without a descriptor. A new file gets the lowest free descriptor.
void open_missing_streams() noexcept {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int opened =
        open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void expect_output_written() {
  errno = 0;
  const bool is_flushed = std::fflush(stdout) == 0;
  if (is_flushed && std::ferror(stdout) == 0) return;
  if (!is_flushed && errno != 0) throw um::system_error("cannot write to standard output", errno);
  throw um::Error{"cannot write to standard output"};  // an earlier call failed
}

nlohmann::json places_json(const ArenaUse& use) {
  return {{"extent_bytes", use.extent.count()},
          {"arena_bytes", use.room.count()},
          {"fits", use.fits()}};
}

std::string describe_places(const nlohmann::json& use) {
  const auto bytes = [&](const char* key) {
    return um::to_string(um::Bytes{use.at(key).get<std::uint64_t>()});
  };
  if (use.at("fits").get<bool>()) {
    return fmt::format("fixed places in {} of {}", bytes("extent_bytes"), bytes("arena_bytes"));
  }
  return fmt::format("places as blocks come, compacted where needed: fixed ones take {}, not {}",
                     bytes("extent_bytes"), bytes("arena_bytes"));
}

namespace {

std::vector<std::size_t> widths_of(const std::vector<TableLine>& lines) {
  std::vector<std::size_t> widths;
  for (const TableLine& line : lines) {
    if (widths.size() < line.size()) widths.resize(line.size());
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  return widths;
}

}  // namespace

std::string text_table(const std::vector<TableLine>& lines, std::size_t left) {
  const std::vector<std::size_t> widths = widths_of(lines);
  std::string table;
  for (const TableLine& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) text += "  ";
      text += i < left ? fmt::format("{:<{}}", line[i], widths[i])
                       : fmt::format("{:>{}}", line[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    table += text + '\n';
  }
  return table;
}

}  // namespace spillway::cli
