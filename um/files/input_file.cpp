#include "um/files/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "um/bytes.h"
#include "um/error.h"

namespace spillway::um {
namespace {

Error no_ordinary_file(const std::filesystem::path& path) {
  return Error{"cannot read " + path.string() + ": it is no ordinary file"};
}

}  // namespace

// Without O_NONBLOCK the opening of a named pipe waits for somebody who writes.
InputFile::InputFile(std::filesystem::path path) : path_{std::move(path)} {
  if (path_.native().find('\0') != std::string::npos) {  // where the system would cut it
    throw Error{std::string{"cannot read "} + path_.c_str() +
                "...: a zero byte comes next, which no file has in its name"};
  }
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0 && errno == ENXIO) throw no_ordinary_file(path_);  // a socket
  if (descriptor < 0) throw system_error("cannot read " + path_.string(), errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw no_ordinary_file(path_);
  }
  descriptor_ = descriptor;
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_{std::move(other.path_)},
      descriptor_{std::exchange(other.descriptor_, -1)},
      size_{other.size_} {}

// Zero at the end.
std::size_t InputFile::read_some(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (true) {
    const ssize_t count =
        ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) throw system_error("cannot read " + path_.string(), errno);
  }
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const std::size_t count = read_some(offset, bytes);
    if (count == 0) {
      throw Error{path_.string() + " ends at byte " + std::to_string(offset) +
                  " and goes on no further; copy or download it again"};
    }
    offset += count;
    bytes = bytes.subspan(count);
  }
}

std::string InputFile::text(std::size_t largest) const {
  constexpr std::size_t kPart = 1ULL << 20U;
  std::string all;
  for (std::size_t end = 0; all.size() <= largest; all.resize(end)) {
    all.resize(end + kPart);
    const std::size_t count = read_some(end, std::as_writable_bytes(std::span{all}).subspan(end));
    end += count;
    if (count > 0) continue;
    all.resize(end);
    return all;
  }
  throw Error{path_.string() + " is larger than " + to_string(Bytes{largest})};
}

}  // namespace spillway::um
