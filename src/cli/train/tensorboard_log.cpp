#include "src/cli/train/tensorboard_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "um/error.h"
#include "um/host/far/far_store.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;

// Messages of TensorFlow's event.proto and summary.proto by protobuf's encoding. A field has a key
// of its number and its kind, then its value. Only the fields below are written.
enum class Kind : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void add_varint(std::uint64_t number, std::string& message) {
  for (; number >= 0x80U; number >>= 7U) message += static_cast<char>(number | 0x80U);
  message += static_cast<char>(number);
}

void add_little_endian(std::uint64_t number, std::size_t bytes, std::string& message) {
  for (std::size_t i = 0; i < bytes; ++i) message += static_cast<char>(number >> (8 * i));
}

void add_key(std::uint64_t field, Kind kind, std::string& message) {
  add_varint(field << 3U | static_cast<std::uint64_t>(kind), message);
}

void add_bytes(std::uint64_t field, std::string_view bytes, std::string& message) {
  add_key(field, Kind::kBytes, message);
  add_varint(bytes.size(), message);
  message += bytes;
}

// Returns the beginning of an Event: wall_time = 1, step = 2.
std::string event_of(std::uint64_t step) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  add_key(1, Kind::kFixed64, event);
  add_little_endian(std::bit_cast<std::uint64_t>(now.count()), sizeof(double), event);
  add_key(2, Kind::kVarint, event);
  add_varint(step, event);
  return event;
}

// Returns the check sum of a TFRecord: a CRC that is turned and moved, so that records may hold
// CRCs.
std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = um::crc32c(std::as_bytes(std::span{bytes}));
  return std::rotr(crc, 15) + 0xa282ead8U;
}

// Returns "events.out.tfevents.1764441600.host.4711.0", as TensorFlow names them, with the first
// number that is free.
std::string new_path(const fs::path& folder) {
  std::array<char, 256> host{"localhost"};
  gethostname(host.data(), host.size() - 1);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  for (int i = 0;; ++i) {
    const fs::path path = folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}",
                                               seconds.count(), host.data(), getpid(), i);
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return path.string();
  }
}

}  // namespace

TensorBoardLog::TensorBoardLog(const std::string& folder, std::optional<std::uint64_t> done) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw um::system_error("cannot make the folder " + folder, error.value());
  path_ = new_path(folder);
  file_.open(path_, std::ios::binary);
  if (!file_) throw um::system_error("cannot write " + path_, errno);
  std::string version = event_of(0);
  add_bytes(3, "brain.Event:2", version);  // file_version = 3
  write(version);
  if (!done) return;
  std::string begin = event_of(*done + 1);
  add_bytes(7, "\x08\x01", begin);  // session_log = 7, of status = 1: START
  write(begin);
}

void TensorBoardLog::add(std::uint64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    add_bytes(1, scalar.tag, value);    // tag = 1
    add_key(2, Kind::kFixed32, value);  // simple_value = 2
    add_little_endian(std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value)), sizeof(float),
                      value);
    add_bytes(1, value, summary);  // value = 1
  }
  std::string event = event_of(step);
  add_bytes(5, summary, event);  // summary = 5
  write(event);
}

// A TFRecord: length and its check sum, bytes and theirs.
void TensorBoardLog::write(const std::string& event) {
  std::string record;
  add_little_endian(event.size(), sizeof(std::uint64_t), record);
  add_little_endian(masked_crc(record), sizeof(std::uint32_t), record);
  record += event;
  add_little_endian(masked_crc(event), sizeof(std::uint32_t), record);
  errno = 0;
  file_.write(record.data(), static_cast<std::streamsize>(record.size()));
  file_.flush();
  if (!file_) throw um::system_error("cannot write " + path_, errno == 0 ? EIO : errno);
}

}  // namespace spillway::cli
