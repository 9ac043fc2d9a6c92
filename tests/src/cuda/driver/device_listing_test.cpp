// The lines of `spillway devices` for GPUs of many kinds, which need not be here.

#include "src/cli/device_listing.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/expect_text.h"
#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/driver/capabilities.h"
#include "um/cuda/driver/runtime_api.h"

namespace spillway::cli {
namespace {

using namespace um::literals;
using um::CudaFacts;

constexpr const char* kTexts = "src/cuda/driver/device_listing.txt";

struct Card {
  std::string name;  // of a section in kTexts
  CudaFacts facts;
  std::optional<std::string> link;
  std::optional<std::string> no_counters;
};

const std::string kPcie5 = "32.0 GT/s PCIe x16";
const std::string kNoCupti = "libcupti.so was not found";

CudaFacts facts_of(const std::string& name, int compute_capability, um::Bytes memory) {
  CudaFacts facts = um::RecordingApi::h200();
  facts.name = name;
  facts.compute_capability = compute_capability;
  facts.memory = memory;
  return facts;
}

std::vector<Card> cards() {
  CudaFacts wsl = facts_of("NVIDIA GeForce RTX 4060 Laptop GPU", 89, 8_GiB);
  wsl.has_concurrent_managed_access = false;
  wsl.has_pageable_access = false;
  wsl.has_discard = false;
  wsl.copy_engines = 1;
  CudaFacts turing = facts_of("Tesla T4", 75, 15_GiB);
  turing.driver_version = 12080;
  turing.has_discard = false;
  CudaFacts orin = facts_of("Orin", 87, 30_GiB);
  orin.driver_version = 12060;
  orin.has_concurrent_managed_access = false;
  orin.has_pageable_access = false;
  orin.has_discard = false;
  orin.copy_engines = 1;
  orin.is_integrated = true;
  CudaFacts gb10 = facts_of("NVIDIA GB10", 121, 120_GiB);
  gb10.uses_host_page_tables = true;
  gb10.is_integrated = true;
  CudaFacts gh200 = facts_of("NVIDIA GH200 480GB", 90, 95_GiB);
  gh200.uses_host_page_tables = true;
  return {{"H100 PCIe", facts_of("NVIDIA H100 PCIe", 90, 80_GiB), kPcie5, std::nullopt},
          {"WSL laptop", wsl, std::nullopt, kNoCupti},
          {"old driver", turing, "8.0 GT/s PCIe x16", kNoCupti},
          {"Jetson Orin", orin, std::nullopt, kNoCupti},
          {"GB10", gb10, std::nullopt, std::nullopt},
          {"GH200", gh200, std::nullopt, std::nullopt},
          {"MIG slice", facts_of("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 80, 4864_MiB),
           "16.0 GT/s PCIe x16", kNoCupti}};
}

// Returns the listing of a card; replaces the parts that depend on this machine.
ListedDevice listed(const Card& card) {
  auto api = std::make_unique<um::RecordingApi>(card.facts);
  api->set_free(card.facts.memory - 1_GiB);
  ListedDevice device = describe_device("cuda:0", um::CudaDevice{std::move(api), {}});
  device.kernels = "cuDNN 9.19.0, fp32";
  device.available = card.facts.memory - 2_GiB;  // of an integrated GPU: this machine's RAM
  device.capabilities = um::describe(card.facts, card.link, card.no_counters);
  return device;
}

TEST(DeviceListing, SaysWhatEachGpuCanDo) {
  std::set<std::string> sections;
  for (const Card& card : cards()) {
    test::expect_text(kTexts, card.name, to_text(listed(card)));
    sections.insert(card.name);
  }
  const um::DriverAnswer too_old{.status = cudaErrorInsufficientDriver,
                                 .status_text = "insufficient driver",
                                 .driver_version = 11080,
                                 .runtime_version = 13000};
  for (const auto& [name, answer] :
       {std::pair{"no driver", um::DriverAnswer{}}, std::pair{"driver that is too old", too_old}}) {
    const um::Error reason{*um::why_unusable(answer, 0)};
    test::expect_text(kTexts, name, to_text(unusable("cuda", reason)));
    sections.insert(name);
  }
  test::expect_only_sections(kTexts, sections);
}

// Programs read the same.
TEST(DeviceListing, IsTheSameInJson) {
  for (const Card& card : cards()) {
    const ListedDevice device = listed(card);
    const nlohmann::json json = to_json(device);
    EXPECT_EQ(json.at("memory"), to_string(device.memory.mode));
    EXPECT_EQ(json.at("memory_reason"), device.memory.reason);
    EXPECT_EQ(json.at("available_memory_bytes"), device.available.count());
    EXPECT_EQ(json.at("total_memory_bytes"), card.facts.memory.count());
    ASSERT_EQ(json.at("capabilities").size(), device.capabilities.size());
    for (std::size_t i = 0; i < device.capabilities.size(); ++i) {
      EXPECT_EQ(json.at("capabilities").at(i).at("comment"), device.capabilities[i].comment);
    }
  }
}

}  // namespace
}  // namespace spillway::cli
