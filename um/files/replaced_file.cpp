#include "um/files/replaced_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "um/error.h"

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
    throw system_error("cannot write " + path.string(), errno);  // the user knows of the file only
  }
  return std::make_unique<Folder>(folder);
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
  constexpr mode_t kMode = 0666;  // less what the umask takes
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

}  // namespace spillway::um
