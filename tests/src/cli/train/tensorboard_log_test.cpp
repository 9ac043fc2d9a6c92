// Event files are read back by a reader of the format that shares no code with the writer.
#include "src/cli/train/tensorboard_log.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace spillway::cli {
namespace {

// CRC-32C by bits, with the mask of a TFRecord.
std::uint32_t expected_crc(const std::string& bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) * 0x82f63b78U);
  }
  crc = ~crc;
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

template <class Number>
Number number_at(const std::string& text, std::size_t place) {
  std::array<char, sizeof(Number)> bytes{};
  text.copy(bytes.data(), bytes.size(), place);
  return std::bit_cast<Number>(bytes);  // this machine is little-endian, as the file
}

// The records of an event file. Throws where a check sum is wrong.
std::vector<std::string> records_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  std::vector<std::string> records;
  for (std::size_t at = 0; at < text.size();) {
    const auto size = number_at<std::uint64_t>(text, at);
    const std::string record = text.substr(at + 12, size);
    if (number_at<std::uint32_t>(text, at + 8) != expected_crc(text.substr(at, 8)) ||
        record.size() != size ||
        number_at<std::uint32_t>(text, at + 12 + size) != expected_crc(record)) {
      throw std::runtime_error{"a check sum is wrong"};
    }
    records.push_back(record);
    at += 16 + size;
  }
  return records;
}

// The fields of a message of protobuf's: numbers as their bits, texts and messages as bytes.
using Fields = std::multimap<std::uint64_t, std::string>;

std::uint64_t varint(const std::string& message, std::size_t& at) {
  std::uint64_t number = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(message.at(at++));
    number |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80U) return number;
  }
}

Fields fields_of(const std::string& message) {
  Fields fields;
  for (std::size_t at = 0; at < message.size();) {
    const std::uint64_t key = varint(message, at);
    const std::uint64_t kind = key & 7U;
    if (kind == 0) {
      fields.emplace(key >> 3U, std::to_string(varint(message, at)));
      continue;
    }
    const std::size_t size = kind == 1 ? 8 : kind == 5 ? 4 : varint(message, at);
    fields.emplace(key >> 3U, message.substr(at, size));
    at += size;
  }
  return fields;
}

std::map<std::string, float> scalars_of(const std::string& event) {
  std::map<std::string, float> scalars;
  const Fields fields = fields_of(event);
  if (!fields.contains(5)) return scalars;
  const Fields summary = fields_of(fields.find(5)->second);
  for (auto [value, end] = summary.equal_range(1); value != end; ++value) {
    const Fields parts = fields_of(value->second);
    scalars[parts.find(1)->second] = number_at<float>(parts.find(2)->second, 0);
  }
  return scalars;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) files.push_back(entry);
  return files;
}

TEST(TensorBoardLog, IsAFileOfRecordsThatReadersKnow) {
  const test::TemporaryFolder folder;
  const std::string place = folder.file("run/log");
  TensorBoardLog log{place, std::nullopt};
  log.add(1, std::array{Scalar{"loss", 2.5}, Scalar{"memory/bytes_in", 3e9}});
  log.add(300, std::array{Scalar{"loss", NAN}});
  const auto files = files_in(place);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].filename().string().find("events.out.tfevents."), 0U);
  const std::vector<std::string> records = records_of(files[0]);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(fields_of(records[0]).find(3)->second, "brain.Event:2");
  EXPECT_EQ(fields_of(records[1]).find(2)->second, "1");
  EXPECT_EQ(scalars_of(records[1]),
            (std::map<std::string, float>{{"loss", 2.5F}, {"memory/bytes_in", 3e9F}}));
  EXPECT_EQ(fields_of(records[2]).find(2)->second, "300");
  EXPECT_TRUE(std::isnan(scalars_of(records[2]).at("loss")));
  const auto wall = number_at<double>(fields_of(records[2]).find(1)->second, 0);
  EXPECT_GT(wall, 1.7e9);
}

// TensorBoard drops what files before have of the steps from a START on.
TEST(TensorBoardLog, BeginsWhereATrainingGoesOn) {
  const test::TemporaryFolder folder;
  const TensorBoardLog first{folder.path().string(), std::nullopt};
  const TensorBoardLog second{folder.path().string(), 20};
  ASSERT_EQ(files_in(folder.path()).size(), 2U) << "in the same second";
  std::size_t starts = 0;
  for (const auto& file : files_in(folder.path())) {
    for (const std::string& record : records_of(file)) {
      const Fields fields = fields_of(record);
      if (!fields.contains(7)) continue;
      ++starts;
      EXPECT_EQ(fields.find(2)->second, "21");
      EXPECT_EQ(fields_of(fields.find(7)->second).find(1)->second, "1");
    }
  }
  EXPECT_EQ(starts, 1U);
}

TEST(TensorBoardLog, SaysWhatItCannotWrite) {
  const test::TemporaryFolder folder;
  std::ofstream{folder.file("file")} << "text";
  EXPECT_NE(test::refusal([&] {
              TensorBoardLog{folder.file("file"), std::nullopt};
            }).find("file"),
            std::string::npos);
}

}  // namespace
}  // namespace spillway::cli
