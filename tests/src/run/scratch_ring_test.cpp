#include "src/run/scratch_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace spillway {
namespace {

using Piece = ScratchRing::Piece;
using Place = ScratchRing::Place;
using um::Bytes;

Piece block(std::uint32_t id, std::uint64_t size) {
  return {.block = prefetch::DataId{id}, .size = Bytes{size}};
}
Piece workspace(std::uint64_t size) { return {.block = {}, .size = Bytes{size}}; }

class Ring : public testing::Test {
 protected:
  // Returns the offsets of the pieces.
  std::vector<std::ptrdiff_t> place(const std::vector<Piece>& pieces) {
    places_ = ring_.place(pieces);
    std::vector<std::ptrdiff_t> offsets;
    for (const Place& place : places_) offsets.push_back(place.address - memory_.data());
    return offsets;
  }
  [[nodiscard]] std::vector<bool> new_ones() const {
    std::vector<bool> result;
    for (const Place& place : places_) result.push_back(place.is_new);
    return result;
  }

  std::vector<std::byte> memory_{100};
  ScratchRing ring_{{memory_.data(), memory_.size()}};
  std::vector<Place> places_;
};

using Offsets = std::vector<std::ptrdiff_t>;

TEST_F(Ring, GoesOnWhereTheLastTaskEnded) {
  EXPECT_EQ(place({block(0, 20), block(1, 30)}), (Offsets{0, 20}));
  EXPECT_EQ(place({block(2, 10), workspace(5)}), (Offsets{50, 60}));
  EXPECT_EQ(new_ones(), (std::vector{true, true}));
}

TEST_F(Ring, KeepsWhatIsStillThere) {
  place({block(0, 20), block(1, 30)});
  EXPECT_EQ(place({block(1, 30), block(2, 20)}), (Offsets{20, 50}));
  EXPECT_EQ(new_ones(), (std::vector{false, true}));
}

// Block 2 does not fit behind block 1, and overwrites 0 but not 1.
TEST_F(Ring, LosesTheOldestFirst) {
  place({block(0, 40), block(1, 40)});
  EXPECT_EQ(place({block(2, 30)}), (Offsets{0}));
  EXPECT_EQ(place({block(1, 40)}), (Offsets{40}));
  EXPECT_EQ(new_ones(), (std::vector{false}));
  EXPECT_EQ(place({block(0, 10)}), (Offsets{30}));
  EXPECT_EQ(new_ones(), (std::vector{true}));
}

// Block 0 would be kept, but block 1 needs its place.
TEST_F(Ring, NeverOverwritesAnOperandOfTheSameTask) {
  place({block(0, 40)});
  place({block(1, 40)});
  EXPECT_EQ(place({block(0, 40), block(2, 40)}), (Offsets{0, 40}));
  EXPECT_EQ(new_ones(), (std::vector{true, true}));
}

TEST_F(Ring, HoldsATaskOfExactlyItsSize) {
  place({block(0, 30)});
  EXPECT_EQ(place({block(1, 60), block(2, 40)}), (Offsets{0, 60}));
  EXPECT_EQ(place({block(2, 40), block(3, 60)}), (Offsets{60, 0}));
}

TEST_F(Ring, PlacesPiecesOfNoSize) { EXPECT_EQ(place({workspace(0), block(0, 0)}).size(), 2U); }

// Pieces of one task never overlap or leave the memory, and kept ones do not move.
TEST_F(Ring, KeepsItsWordForManyTasks) {
  std::mt19937 random{1};
  std::vector<std::ptrdiff_t> last(12, -1);
  for (int task = 0; task < 20000; ++task) {
    std::vector<Piece> pieces;
    std::uint64_t rest = 100;
    for (std::uint32_t id = 0; id < 12; ++id) {
      const std::uint64_t size = 3 + 7 * (id % 6);
      if (random() % 3 != 0 || size > rest) continue;
      rest -= size;
      pieces.push_back(block(id, size));
    }
    const Offsets offsets = place(pieces);
    std::vector<int> users(memory_.size(), 0);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto id = static_cast<std::size_t>(*pieces[i].block);
      if (!places_[i].is_new) {
        EXPECT_EQ(offsets[i], last[id]);
      }
      last[id] = offsets[i];
      for (std::uint64_t byte = 0; byte < pieces[i].size.count(); ++byte) {
        ++users.at(static_cast<std::size_t>(offsets[i]) + byte);
      }
    }
    ASSERT_LE(*std::ranges::max_element(users), 1) << "task " << task;
  }
}

}  // namespace
}  // namespace spillway
