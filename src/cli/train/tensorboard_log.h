#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway::cli {

/// A number of a step, as TensorBoard's page "Scalars" shows it.
struct Scalar {
  std::string_view tag;  ///< "test/loss": a slash divides group and name
  double value;
};

/// Writes numbers by step to a new event file of TensorBoard's in a folder, in which a training may
/// leave one each time it goes on. TensorBoard reads them all, also while they are written.
class TensorBoardLog {
 public:
  /// Makes the folder, and a file in it. A training that goes on after step `done` replaces what
  /// earlier files have of later steps. Throws: um::Error when that fails.
  TensorBoardLog(const std::string& folder, std::optional<std::uint64_t> done);

  /// Throws: um::Error when the file cannot be written.
  void add(std::uint64_t step, std::span<const Scalar> scalars);

 private:
  void write(const std::string& event);

  std::string path_;
  std::ofstream file_;
};

}  // namespace spillway::cli
