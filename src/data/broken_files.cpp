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
