#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

#include "src/io/file_digest.h"

namespace spillway {
namespace {

void update(Sha256& hash, std::string_view text) { hash.update(std::as_bytes(std::span{text})); }

std::string digest(std::string_view text) {
  Sha256 hash;
  update(hash, text);
  return hash.hex();
}

// The examples of FIPS 180-4.
TEST(Sha256, GivesTheKnownDigests) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, TakesBytesPieceByPiece) {
  Sha256 hash;
  update(hash, "a");
  update(hash, "");
  update(hash, "bc");
  EXPECT_EQ(hash.hex(), digest("abc"));
}

TEST(Sha256, GoesOnAfterADigest) {
  Sha256 hash;
  update(hash, "ab");
  EXPECT_EQ(hash.hex(), digest("ab"));
  update(hash, "c");
  EXPECT_EQ(hash.hex(), digest("abc"));
}

}  // namespace
}  // namespace spillway
