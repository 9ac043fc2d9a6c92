#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>

#include "um/bytes.h"
#include "um/host/far/far_store.h"
#include "um/threads/back_off.h"

namespace spillway::um {

/// An open file of fixed size with reserved disk space and no name. It disappears when it is closed
/// or the process ends. Uses direct I/O if the file system supports it.
class UnnamedFile {
 public:
  /// `path` is a folder, or does not exist yet and names a place in a folder. Throws: Error that
  /// names the path and the problem, or how much space is missing.
  UnnamedFile(const std::filesystem::path& path, Bytes size);
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  ~UnnamedFile();

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] bool is_direct() const { return is_direct_; }

 private:
  std::filesystem::path folder_;
  int descriptor_;
  bool is_direct_ = false;
};

/// Returns the first folder for `size` bytes of far memory that lies on a disk and has room for
/// them: $TMPDIR, /var/tmp, the current one. Folders in RAM (tmpfs) would save none. Throws: Error
/// that names what was tried.
[[nodiscard]] std::filesystem::path find_far_folder(Bytes size);

/// The system calls of a FarFile, so that a test can make them fail. Called from page-fault
/// handlers.
struct FarCalls {
  /// Like pread(2) and pwrite(2): -1 and errno on failure.
  std::function<ssize_t(int descriptor, void* to, std::size_t size, off_t at)> pread = ::pread;
  std::function<ssize_t(int descriptor, const void* from, std::size_t size, off_t at)> pwrite =
      ::pwrite;
  std::function<void(Nanoseconds)> pause = [](Nanoseconds time) { sleep_for(time); };
};

/// Far memory in a file. Retries accesses that fail for a temporary reason (EIO, EAGAIN, ENOMEM,
/// EBUSY, ETIMEDOUT) with growing pauses, 3 s in all, even if parts succeed between. A full disk or
/// quota is not temporary. After a futile wait no access waits again.
///
/// Thread safety: any number of threads may read and write different ranges concurrently.
class FarFile final : public FarStore {
 public:
  /// Throws: like UnnamedFile.
  FarFile(const std::filesystem::path& path, Bytes size, FarCalls calls = {});

  /// Throw: Error that names the folder, the failure and the offset in the file.
  void read(Bytes offset, std::span<std::byte> to) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  [[nodiscard]] Bytes size() const override { return size_; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] const std::filesystem::path& folder() const { return file_.folder(); }

 private:
  FarCalls calls_;
  UnnamedFile file_;
  Bytes size_;
  std::atomic<bool> was_in_vain_ = false;
};

}  // namespace spillway::um
