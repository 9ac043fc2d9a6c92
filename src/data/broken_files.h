#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace spillway {

/// What happens when a file cannot be read as an image.
enum class OnBroken : std::uint8_t {
  kStop,  ///< an error that names it
  kSkip   ///< it is noted, and passed over
};

/// Files of a data set that cannot be read and are passed over.
///
/// Thread safety: any number of threads may call any of the functions at once.
class BrokenFiles {
 public:
  explicit BrokenFiles(OnBroken rule) : rule_{rule} {}

  [[nodiscard]] OnBroken rule() const { return rule_; }

  /// Notes a file, of which `sentence` says what is wrong, unless it is noted already. Throws:
  /// um::Error with the sentence where the rule is to stop.
  void add(const std::string& sentence);
  /// The sentences that have come since the last call.
  [[nodiscard]] std::vector<std::string> take_new();
  /// All sentences so far, each once.
  [[nodiscard]] std::vector<std::string> all() const;
  /// Throws: um::Error where there are some, with the sentences of the first ones by name, and how
  /// many others there are.
  void expect_none() const;
  /// Files so far.
  [[nodiscard]] std::size_t count() const;

 private:
  OnBroken rule_;
  mutable std::mutex mutex_;
  std::set<std::string> all_;
  std::vector<std::string> new_;
};

}  // namespace spillway
