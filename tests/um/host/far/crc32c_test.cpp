#include "um/host/far/crc32c.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string_view>
#include <vector>

namespace spillway::um {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

// RFC 3720, B.4: 32 bytes of zeros, of ones, and of 0 to 31; and the check value of the catalogue.
TEST(Crc32c, GivesThePublishedSums) {
  std::array<std::byte, 32> bytes{};
  for (const auto& sum : {crc32c, crc32c_by_table}) {
    bytes.fill(std::byte{0});
    EXPECT_EQ(sum(bytes), 0x8a9136aaU);
    bytes.fill(std::byte{0xff});
    EXPECT_EQ(sum(bytes), 0x62a8ab43U);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    EXPECT_EQ(sum(bytes), 0x46dd794eU);
    EXPECT_EQ(sum(bytes_of("123456789")), 0xe3069283U);
    EXPECT_EQ(sum({}), 0U);
  }
}

TEST(Crc32c, OfPartsIsThatOfEachPart) {
  constexpr std::size_t kPart = 24;
  std::vector<std::byte> bytes(7 * kPart);  // four at a time, and three that are left
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i);
  std::array<std::uint32_t, 7> sums{};
  crc32c_of_parts(bytes, sums);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i], crc32c_by_table(std::span{bytes}.subspan(i * kPart, kPart)));
  }
}

}  // namespace
}  // namespace spillway::um
