#pragma once

#include <string>

#include "um/files/folder.h"

namespace spillway::um {

/// The right to change a folder, which one owner has at a time, on this machine or on another that
/// shares the file system. It is the kernel's lock of the file ".spillway-lock" there, so that it
/// ends with the process that holds it, however that ends. While it is held, the file says by whom.
class FolderLock {
 public:
  static constexpr const char* kFile = ".spillway-lock";

  /// Throws: Error at once when another holds it, which is named: process, machine and since when;
  /// or when the file system has no locks, or a file of this name is not one of ours.
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
