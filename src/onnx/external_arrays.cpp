#include "src/onnx/external_arrays.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <system_error>

#include "um/error.h"
#include "um/files/folder.h"
#include "um/files/input_file.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

um::Error array_error(const std::string& name, const std::string& complaint) {
  return um::Error{"array '" + name + "' " + complaint};
}

void expect_beside(const std::string& name, const fs::path& folder, const fs::path& location) {
  if (location.native().find('\0') != std::string::npos) {
    throw array_error(name, "is in a file whose name has a zero byte, which no file has");
  }
  if (!um::is_file_name(location.native())) {
    throw array_error(name, "is in '" + location.string() + "', which is no file beside it");
  }
  std::error_code ignored;
  if (fs::is_symlink(folder / location, ignored)) {
    throw array_error(
        name, "is in '" + location.string() + "', which is a link; put the file itself beside it");
  }
}

}  // namespace

std::string ExternalArrays::read(const std::string& name, const ExternalPlace& place,
                                 std::uint64_t bytes) {
  expect_beside(name, folder_, place.location);
  const um::InputFile file{folder_ / place.location};
  const bool is_inside =
      place.offset <= file.size() && place.length.value_or(bytes) <= file.size() - place.offset;
  if (!is_inside) {
    throw array_error(name, "goes beyond the end of " + place.location.string());
  }
  if (place.length.value_or(bytes) != bytes) {
    throw array_error(name, "does not have as many numbers as its shape says");
  }
  if (known_.insert(place.location.string()).second) all_ += file.size();
  if (bytes > all_ - std::min(all_, read_)) {
    throw array_error(name,
                      "takes numbers of " + place.location.string() + " that other arrays have");
  }
  read_ += bytes;
  std::string content(bytes, '\0');
  file.read(place.offset, std::as_writable_bytes(std::span{content}));
  return content;
}

}  // namespace spillway
