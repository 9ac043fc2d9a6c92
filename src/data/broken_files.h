#pragma once

#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace spillway {

/// Files of a data set that cannot be read and are passed over.
///
/// Thread safety: any number of threads may call any of the functions at once.
class BrokenFiles {
 public:
  /// Notes a file, of which `sentence` says what is wrong, unless it is noted already.
  void add(const std::string& sentence);
  /// The sentences that have come since the last call.
  [[nodiscard]] std::vector<std::string> take_new();
  /// Files so far.
  [[nodiscard]] std::size_t count() const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> all_;
  std::vector<std::string> new_;
};

}  // namespace spillway
