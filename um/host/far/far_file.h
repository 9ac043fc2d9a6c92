#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>

#include "um/bytes.h"
#include "um/host/far/far_store.h"
#include "um/host/far/unnamed_file.h"
#include "um/threads/back_off.h"

namespace spillway::um {

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
