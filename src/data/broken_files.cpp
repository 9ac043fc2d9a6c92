#include "src/data/broken_files.h"

#include <utility>

#include "um/error.h"

namespace spillway {

void BrokenFiles::add(const std::string& sentence) {
  if (rule_ == OnBroken::kStop) {
    throw um::Error{sentence + "; remove it, or use --on-broken skip"};
  }
  const std::lock_guard lock{mutex_};
  if (all_.insert(sentence).second) new_.push_back(sentence);
}

void BrokenFiles::expect_none() const {
  constexpr std::size_t kMostNamed = 10;
  const std::lock_guard lock{mutex_};
  if (all_.empty()) return;
  if (all_.size() == 1) throw um::Error{*all_.begin() + "; remove it, or use --on-broken skip"};
  std::string sentence = std::to_string(all_.size()) + " files are broken: ";
  std::size_t named = 0;
  for (const std::string& each : all_) {
    if (named++ == kMostNamed) break;
    sentence += each + "; ";
  }
  if (all_.size() > kMostNamed) {
    const std::size_t others = all_.size() - kMostNamed;
    sentence += "and " + std::to_string(others) + (others == 1 ? " other; " : " others; ");
  }
  throw um::Error{sentence + "remove them, or use --on-broken skip"};
}

std::vector<std::string> BrokenFiles::take_new() {
  const std::lock_guard lock{mutex_};
  return std::exchange(new_, {});
}

std::vector<std::string> BrokenFiles::all() const {
  const std::lock_guard lock{mutex_};
  return {all_.begin(), all_.end()};
}

std::size_t BrokenFiles::count() const {
  const std::lock_guard lock{mutex_};
  return all_.size();
}

}  // namespace spillway
