#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace spillway::test {

/// While it lives, this process may not read a folder: root, whom permissions do not stop, acts as
/// another user, where it can.
class UnreadableFolder {
 public:
  explicit UnreadableFolder(std::string path) : path_{std::move(path)} {
    std::filesystem::permissions(path_, std::filesystem::perms::none);
    constexpr uid_t kNobody = 65534;
    is_other_user_ = geteuid() == 0 && seteuid(kNobody) == 0;
  }
  UnreadableFolder(const UnreadableFolder&) = delete;
  UnreadableFolder& operator=(const UnreadableFolder&) = delete;
  ~UnreadableFolder() {
    if (is_other_user_ && seteuid(0) != 0) ADD_FAILURE() << "root cannot be root again";
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }

  /// False where nothing stops this user, or all above it is as closed to the other one.
  [[nodiscard]] bool is_unreadable() const {
    const std::filesystem::path above = std::filesystem::path{path_}.parent_path();
    return can_read(above) && !can_read(path_);
  }

 private:
  static bool can_read(const std::filesystem::path& folder) {
    std::error_code error;
    const std::filesystem::directory_iterator entries{folder, error};
    return !error;
  }

  std::string path_;
  bool is_other_user_ = false;
};

}  // namespace spillway::test
