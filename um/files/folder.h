#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::um {

/// A folder that is open: a name in it stays a name in it, also when somebody moves the folder or
/// puts a link in the place of its path meanwhile.
///
/// Thread safety: any number of threads may call any of the const functions at once.
class Folder {
 public:
  /// Throws: Error when there is no such folder or it cannot be opened.
  explicit Folder(std::filesystem::path path);
  /// Makes what is missing of `path` first, on the disk before it returns. Throws: Error.
  [[nodiscard]] static Folder make(const std::filesystem::path& path);
  ~Folder();
  Folder(Folder&& other) noexcept;
  Folder& operator=(Folder&&) = delete;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Of a file, for sentences.
  [[nodiscard]] std::string path_of(const std::string& name) const;
  /// For the system's calls whose names end in "at".
  [[nodiscard]] int descriptor() const { return descriptor_; }

  /// What there is, but for "." and "..", in no order. Throws: Error.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Removes the file of this name, where there is one. Throws: Error when it cannot be removed.
  void remove(const std::string& name) const;
  /// Waits until what was made, renamed and removed here is so on the disk. Throws: Error.
  void sync() const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Returns whether `name` is that of a file in a folder, and leads nowhere else: no path, and no
/// text that the system would cut at a zero byte. For names that come from a file.
[[nodiscard]] bool is_file_name(std::string_view name);

/// The folder that `path` lies in: "." for "file".
[[nodiscard]] std::filesystem::path parent_of(const std::filesystem::path& path);

}  // namespace spillway::um
