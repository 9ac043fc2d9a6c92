#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::um {

/// An open folder. A name in it stays valid when the folder is moved or its path is replaced by a
/// link.
///
/// Thread safety: any number of threads may call the const functions concurrently.
class Folder {
 public:
  /// Throws: Error when the folder does not exist or cannot be opened.
  explicit Folder(std::filesystem::path path);
  /// Creates the missing folders of `path`, and returns when they are on the disk. Throws: Error.
  [[nodiscard]] static Folder make(const std::filesystem::path& path);
  ~Folder();
  Folder(Folder&& other) noexcept;
  Folder& operator=(Folder&&) = delete;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Returns the path of the file `name`, for messages.
  [[nodiscard]] std::string path_of(const std::string& name) const;
  /// For system calls with names that end in "at".
  [[nodiscard]] int descriptor() const { return descriptor_; }

  /// Returns all names except "." and "..", in no order. Throws: Error.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Removes the file `name` if it exists. Throws: Error when it cannot be removed.
  void remove(const std::string& name) const;
  /// Waits until created, renamed and removed files are on the disk. Throws: Error.
  void sync() const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Returns whether `name` is a plain file name in a folder: not a path, and without a zero byte
/// that the system would cut it at. Checks names that come from a file.
[[nodiscard]] bool is_file_name(std::string_view name);

/// Returns the folder of `path`: "." for "file".
[[nodiscard]] std::filesystem::path parent_of(const std::filesystem::path& path);

/// The right to change a folder, which one owner has at a time, also across machines that share the
/// file system. It is a kernel lock on the file ".spillway-lock", so it ends with its process in
/// any case. The locked file names its owner.
class FolderLock {
 public:
  static constexpr const char* kFile = ".spillway-lock";

  /// Throws: Error at once when another process holds the lock, named by process, machine and time;
  /// or when the file system has no locks or the file is not a Spillway lock.
  explicit FolderLock(const Folder& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_ = -1;
  int descriptor_ = -1;
};

}  // namespace spillway::um
