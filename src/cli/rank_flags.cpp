#include "src/cli/rank_flags.h"

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "src/cli/flags/duration.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/flags/number_checks.h"
#include "src/plan/state_choice.h"
#include "src/ranks/rank_names.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

constexpr std::uint32_t kMostRanks = 65'536;
constexpr um::Bandwidth kSlowest{1e6};
constexpr um::Nanoseconds kLongestLatency{1'000'000'000};
constexpr const char* kRanks = "Ranks";

std::string check_ranks(const std::string& text) {
  const std::size_t number = parse_rank_count(text).value_or(0);
  if (number > 0 && number <= kMostRanks) return {};
  return "'" + text + "' is no number of ranks: give a whole number from 1 to " +
         std::to_string(kMostRanks);
}

std::string check_interconnect(const std::string& text) {
  std::string complaint = check_bandwidth(text);
  if (complaint.empty() && *um::parse_bandwidth(text) < kSlowest) {
    complaint = "'" + text + "' is too slow for ranks: give at least 1MB/s";
  }
  return complaint;
}

std::string check_latency(const std::string& text) {
  const auto time = parse_duration(text);
  if (time && *time <= kLongestLatency) return {};
  return "'" + text + "' is no latency of up to a second: give one such as 5us";
}

std::string check_speed(const std::string& text) {
  if (within(SettingRange<float>{.most = 1, .is_above_least = true})(text).empty()) return {};
  return "'" + text + "' is no speed relative to 1: give a number above 0, at most 1";
}

}  // namespace

void RankFlags::add_to(CLI::App& app) {
  app.add_option("--ranks", ranks,
                 "Plan the step of one of so many processors that train together, each with its "
                 "own --batch: gradients become sums over all of them by a ring all-reduce, bucket "
                 "by bucket, beside the rest of the backward pass")
      ->check(check_ranks)
      ->capture_default_str()
      ->group(kRanks);
  app.add_option("--interconnect", bandwidth,
                 "Bandwidth between ranks: what each one sends, and as much that it receives, "
                 "e.g. 25GB/s")
      ->check(check_interconnect)
      ->group(kRanks);
  app.add_option("--interconnect-latency", latency, "Latency of a message from a rank to the next")
      ->check(check_latency)
      ->capture_default_str()
      ->group(kRanks);
  app.add_option("--exchange-on", exchange_on,
                 "link: what ranks exchange crosses the link between near and far memory, beside "
                 "the moves, as to a network card behind the same PCIe slot; own: it has a way of "
                 "its own, as NVLink")
      ->check(CLI::IsMember({"link", "own"}))
      ->capture_default_str()
      ->group(kRanks);
  app.add_option("--compute-speed-while-exchanging", compute_speed,
                 "How fast tasks run while ranks exchange something, relative to undisturbed: 1 "
                 "where no processor that computes does that; spillway profile --ranks auto "
                 "measures it")
      ->check(check_speed)
      ->type_name("FRACTION")
      ->capture_default_str()
      ->group(kRanks);
  bucket.add_to(app, kRanks);
  zero.add_to(app, kRanks);
  for (const char* name : {"--interconnect", "--interconnect-latency", "--exchange-on",
                           "--compute-speed-while-exchanging", "--bucket", "--zero"}) {
    between_.push_back(app.get_option(name)->needs("--ranks"));
  }
}

void RankFlags::expect_used() const {
  if (are_several()) return;
  for (const CLI::Option* const option : between_) {
    if (option->count() == 0) continue;
    throw um::Error{option->get_name() +
                    " says how several ranks exchange gradients; leave it out, or give --ranks 2 "
                    "or more"};
  }
}

prefetch::Interconnect RankFlags::interconnect() const {
  const auto rate = um::parse_bandwidth(bandwidth);
  if (!rate) {
    throw um::Error{"--ranks " + std::to_string(ranks) +
                    " needs the bandwidth between them: give --interconnect, such as 25GB/s"};
  }
  return {.ranks = ranks,
          .bandwidth = *rate,
          .latency = parse_duration(latency).value(),
          .shares_link = exchange_on == "link",
          .compute_speed = compute_speed};
}

void expect_exchangeable(const PlanRequest& request) {
  expect_near_updates(request);
  if (request.memory == MemoryMode::kManaged && request.planner->name() == "on-demand") {
    throw um::Error{
        "page faults alone (--planner on-demand) are predicted for one rank only; leave out "
        "--ranks, or take another planner or --memory copy"};
  }
}

}  // namespace spillway::cli
