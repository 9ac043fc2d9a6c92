#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace spillway {

/// Where an ONNX file says that the bytes of an array are: in a file beside it.
struct ExternalPlace {
  std::filesystem::path location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;  ///< nothing: as many as the array has
};

/// The arrays that an ONNX file keeps in files beside it. Such a file may come from a stranger:
/// nothing of elsewhere on this machine is read, and no more than those files hold.
class ExternalArrays {
 public:
  /// `folder` is the ONNX file's.
  explicit ExternalArrays(std::filesystem::path folder) : folder_{std::move(folder)} {}

  /// The bytes of an array of `bytes` of them. Throws: um::Error "array 'name' ...", where they are
  /// not there, the place has another length, or arrays overlap so much that all read together are
  /// more than their files hold.
  [[nodiscard]] std::string read(const std::string& name, const ExternalPlace& place,
                                 std::uint64_t bytes);

 private:
  std::filesystem::path folder_;
  std::set<std::string> known_;  // files so far
  std::uint64_t all_ = 0;        // bytes of all of them
  std::uint64_t read_ = 0;       // of these
};

}  // namespace spillway
