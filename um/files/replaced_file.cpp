#include "um/files/replaced_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "um/error.h"
#include "um/files/folder.h"

namespace spillway::um {
namespace {

constexpr std::string_view kEnding = ".partial";
constexpr std::size_t kDigits = 16;

std::string random_digits() {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof(number), 0) != static_cast<ssize_t>(sizeof(number))) {
    if (errno != EINTR) throw system_error("cannot draw a random number", errno);
  }
  constexpr std::string_view kHexadecimal = "0123456789abcdef";
  std::string digits;
  for (std::size_t i = 0; i < kDigits; ++i, number /= 16) digits += kHexadecimal[number % 16];
  return digits;
}

std::unique_ptr<Folder> folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = parent_of(path);
  if (::access(folder.c_str(), X_OK) != 0) {
    throw system_error("cannot write " + path.string(), errno);  // the user knows only the file
  }
  return std::make_unique<Folder>(folder);
}

namespace fs = std::filesystem;

// Overwrites the file at `path`.
void write_into(const std::string& path, std::string_view text) {
  const auto failed = [&](int error) { return system_error("cannot write " + path, error); };
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) throw failed(errno);
  int error = 0;
  while (!text.empty() && error == 0) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error != 0) throw failed(error);
}

// Returns whether a new file can replace the file at `path`. Replacing opens the folder, which
// needs the right to read it.
bool is_replaceable(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status)) return true;
  return fs::is_regular_file(status) && ::access(parent_of(path).c_str(), R_OK | W_OK | X_OK) == 0;
}

}  // namespace

ReplacedFile::ReplacedFile(const std::filesystem::path& path)
    : ReplacedFile{folder_of(path), path.filename().string()} {}

ReplacedFile::ReplacedFile(std::unique_ptr<Folder> own, std::string name)
    : own_{std::move(own)}, folder_{*own_}, name_{std::move(name)} {
  make_partial();
}

ReplacedFile::ReplacedFile(const Folder& folder, std::string name)
    : folder_{folder}, name_{std::move(name)} {
  make_partial();
}

void ReplacedFile::make_partial() {
  constexpr mode_t kMode = 0666;  // less the umask
  constexpr int kTries = 100;     // of 2^64 names
  for (int i = 0; i < kTries && descriptor_ < 0; ++i) {
    partial_ = name_ + '.' + random_digits() + std::string{kEnding};
    descriptor_ = ::openat(folder_.descriptor(), partial_.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode);
    if (descriptor_ < 0 && errno != EEXIST) break;
  }
  if (descriptor_ < 0) throw system_error("cannot write " + folder_.path_of(name_), errno);
}

ReplacedFile::~ReplacedFile() {
  close_descriptor();
  if (!is_in_place_) ::unlinkat(folder_.descriptor(), partial_.c_str(), 0);
}

void ReplacedFile::close_descriptor() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void ReplacedFile::write(std::span<const std::byte> bytes) {
  expects(descriptor_ >= 0, "a file that is not committed");
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error("cannot write " + folder_.path_of(name_), errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void ReplacedFile::flush() {
  expects(descriptor_ >= 0, "a file that is not committed");
  while (::fsync(descriptor_) != 0) {
    if (errno != EINTR) throw system_error("cannot write " + folder_.path_of(name_), errno);
  }
  close_descriptor();
  is_flushed_ = true;
}

void ReplacedFile::take_place() {
  expects(is_flushed_ && !is_in_place_, "a file that is flushed and not committed");
  const int folder = folder_.descriptor();
  if (::renameat(folder, partial_.c_str(), folder, name_.c_str()) != 0) {
    throw system_error("cannot replace " + folder_.path_of(name_), errno);
  }
  is_in_place_ = true;
}

void ReplacedFile::commit() {
  flush();
  take_place();
  folder_.sync();
}

std::string_view replaced_by(std::string_view partial) {
  constexpr std::size_t kAdded = 1 + kDigits + kEnding.size();
  if (partial.size() <= kAdded || !partial.ends_with(kEnding)) return {};
  const std::string_view name = partial.substr(0, partial.size() - kAdded);
  const std::string_view digits = partial.substr(name.size() + 1, kDigits);
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const bool is_ours = partial[name.size()] == '.' && std::ranges::all_of(digits, is_digit);
  return is_ours ? name : std::string_view{};
}

fs::path place_of(const fs::path& path) {
  constexpr int kLinksFollowed = 40;  // the same limit as Linux
  std::error_code error;
  fs::path place = path;
  for (int links = 0; links < kLinksFollowed && fs::is_symlink(place, error); ++links) {
    place = place.parent_path() / fs::read_symlink(place, error);
  }
  return place;
}

void write_output(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  // Checked before links are followed: the link of a pipe in /proc leads to no path.
  if (fs::exists(there) && !fs::is_regular_file(there)) return write_into(path, text);
  const fs::path place = place_of(path);
  if (!is_replaceable(place)) return write_into(path, text);
  ReplacedFile file{place};
  file.write(std::as_bytes(std::span{text}));
  file.commit();
}

}  // namespace spillway::um
