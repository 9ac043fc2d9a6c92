#include "src/cli/flags/workload_flags.h"

#include <CLI/CLI.hpp>
#include <map>

#include "nets/network_catalogue.h"
#include "nets/text/network_file.h"
#include "src/cli/flags/complaint.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

constexpr const char* kWorkload = "What is trained";
constexpr std::size_t kClasses = 10;
constexpr std::size_t kLargestClasses = 1U << 20U;
constexpr std::size_t kLargestSide = 1U << 14U;

const std::map<std::string, ConvolutionAlgorithm> kAlgorithms{
    {"auto", ConvolutionAlgorithm::kAuto},
    {"direct", ConvolutionAlgorithm::kDirect},
    {"winograd", ConvolutionAlgorithm::kWinograd}};

}  // namespace

void WorkloadFlags::add_to(CLI::App& app) {
  app.add_option("--net", net,
                 "Network; spillway nets lists them; resnet:n1,n2,n3,n4 and vgg:a,b,c,d,e name the "
                 "depths of their stages; a name that ends in .net or has a / is the file of a "
                 "network of your own, written as spillway nets NAME --dump writes any of them")
      ->required()
      ->check(check_network)
      ->group(kWorkload);
  app.add_option("--batch", batch, "Images a step")
      ->required()
      ->check(CLI::Range(std::size_t{1}, kLargestBatch))
      ->group(kWorkload);
  app.add_option("--image-size", image_size, "Side of the square images (default: the network's)")
      ->check(image_side())
      ->group(kWorkload);
  app.add_option("--classes", classes,
                 "Classes that the network tells apart (default: 10; a file's are its own)")
      ->check(class_count())
      ->group(kWorkload);
  app.add_flag("--aux-heads", auxiliary_heads,
               "Train with the losses on the way of googlenet or inception-v3")
      ->group(kWorkload);
  app.add_option(
         "--conv-algorithm", convolution_algorithm,
         "Convolution algorithms to choose from: auto (all), direct, or winograd, which "
         "means direct where Winograd's does not apply; on a GPU direct is the one with the least "
         "workspace, and there is no winograd")
      ->check(CLI::IsMember{kAlgorithms})
      ->capture_default_str()
      ->group(kWorkload);
  optimizer.add_choice_to(app);
}

nets::Network WorkloadFlags::network() const {
  const bool is_file = nets::is_network_file(net);
  const nets::CatalogueEntry entry = nets::open_network(net);
  nets::Shape image = entry.image;
  if (image_size > 0) image.height = image.width = image_size;
  if (!is_file) {
    return nets::build_network(net, {.image = image,
                                     .classes = classes.value_or(kClasses),
                                     .auxiliary_heads = auxiliary_heads});
  }
  if (auxiliary_heads) expect_built_in(net);
  return entry.build(image, classes.value_or(entry.classes));
}

StepOptions WorkloadFlags::step() const {
  return {.batch = batch,
          .convolution = kAlgorithms.at(convolution_algorithm),
          .optimizer = optimizer.options()};
}

void expect_built_in(const std::string& name) {
  if (!nets::is_network_file(name)) return;
  throw um::Error{
      "a network from a file has the auxiliary heads that are written there; leave out "
      "--aux-heads"};
}

CLI::Range image_side() { return {std::size_t{1}, kLargestSide}; }

CLI::Range class_count() { return {std::size_t{2}, kLargestClasses}; }

std::string check_network(const std::string& name) {
  if (nets::is_network_file(name)) return {};
  return complaint_of([&] { static_cast<void>(nets::find_network(name)); });
}

}  // namespace spillway::cli
