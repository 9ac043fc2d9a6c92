#include "um/host/far/far_file.h"

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "um/error.h"
#include "um/host/far/far_store.h"
#include "um/threads/back_off.h"

namespace spillway::um {
namespace {

using std::chrono::milliseconds;

constexpr BackOff::Pauses kWaits{
    .first = milliseconds{1}, .longest = milliseconds{500}, .total = std::chrono::seconds{3}};

bool may_pass(int reason) {
  return reason == EIO || reason == EAGAIN || reason == ENOMEM || reason == EBUSY ||
         reason == ETIMEDOUT;
}

/// Moves `size` bytes to or from the file at `at` by calling `move_some(moved)`, which returns like
/// pread(). Returns 0 or an errno; `at` is then where it stopped. Sets `was_in_vain` after a futile
/// wait and never waits again: many accesses may be queued when a disk fails.
template <typename MoveSome>
int move_all(std::size_t size, Bytes& at, const std::function<void(Nanoseconds)>& pause,
             std::atomic<bool>& was_in_vain, const MoveSome& move_some) {
  BackOff waits{kWaits};
  for (std::size_t left = size; left > 0;) {
    const ssize_t moved = move_some(size - left);
    if (moved > 0) {
      left -= static_cast<std::size_t>(moved);
      at += Bytes{static_cast<std::uint64_t>(moved)};
      continue;
    }
    const int reason = moved < 0 ? errno : EIO;  // zero: the file was truncated or is full
    if (reason == EINTR) continue;
    if (!may_pass(reason) || was_in_vain) return reason;
    const std::optional<Nanoseconds> wait = waits.next();
    if (!wait) {
      was_in_vain = true;
      return reason;
    }
    pause(*wait);
  }
  return 0;
}

Error failure_of(const char* deed, const FarFile& file, Bytes at, int reason) {
  return system_error(std::string{"cannot "} + deed + " far memory in " + file.folder().string() +
                          ", at byte " + std::to_string(at.count()) + " of its file",
                      reason);
}

}  // namespace

FarFile::FarFile(const std::filesystem::path& path, Bytes size, FarCalls calls)
    : calls_{std::move(calls)}, file_{path, size}, size_{size} {}

void FarFile::read(Bytes offset, std::span<std::byte> to) {
  expect_far_access(size_, offset, to);
  Bytes at = offset;
  const int reason = move_all(to.size(), at, calls_.pause, was_in_vain_, [&](std::size_t moved) {
    const std::span<std::byte> rest = to.subspan(moved);
    return calls_.pread(file_.descriptor(), rest.data(), rest.size(),
                        static_cast<off_t>(at.count()));
  });
  if (reason != 0) throw failure_of("read", *this, at, reason);
}

void FarFile::write(Bytes offset, std::span<const std::byte> from) {
  expect_far_access(size_, offset, from);
  Bytes at = offset;
  const int reason = move_all(from.size(), at, calls_.pause, was_in_vain_, [&](std::size_t moved) {
    const std::span<const std::byte> rest = from.subspan(moved);
    return calls_.pwrite(file_.descriptor(), rest.data(), rest.size(),
                         static_cast<off_t>(at.count()));
  });
  if (reason != 0) throw failure_of("write", *this, at, reason);
}

std::string FarFile::description() const {
  return "file in " + file_.folder().string() +
         (file_.is_direct() ? ", direct I/O" : ", through the page cache");
}

}  // namespace spillway::um
