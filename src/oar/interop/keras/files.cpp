#include "oar/interop/keras/files.h"

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/formats/hdf5.h"
#include "oar/formats/zip.h"

namespace oar::keras {
namespace {

constexpr int kDeepest = 64;  // groups in groups
constexpr size_t kMostArrays = 1 << 20;

using Entries = std::vector<Weights::Entry>;

// A long list is in several attributes: "weight_names0", "weight_names1", …
std::vector<std::string> names_in(const Hdf5Node& group, const std::string& attribute) {
  if (const auto found = group.texts(attribute)) return *found;
  std::vector<std::string> all;
  for (int i = 0;; ++i) {
    const auto part = group.texts(attribute + std::to_string(i));
    if (!part) return all;
    all.insert(all.end(), part->begin(), part->end());
    user_check(all.size() < kMostArrays, ErrorKind::InvalidArgument, "it has too many weights.");
  }
}

// "dense/kernel:0" below the group of its layer.
std::vector<std::string> path_of(const std::string& layer, std::string_view weight) {
  std::vector<std::string> path{layer};
  const size_t colon = weight.rfind(':');
  if (colon != std::string_view::npos && colon > weight.rfind('/') + 1)
    weight = weight.substr(0, colon);
  for (const std::string_view part : split(weight, '/'))
    if (!part.empty()) path.emplace_back(part);
  return path;
}

// Layers and their weights by name, in the order of Keras.
Weights named_weights(const Hdf5Node& group) {
  Entries entries;
  for (const std::string& layer : names_in(group, "layer_names")) {
    const auto own = group.find(layer);
    user_check(own.has_value(), ErrorKind::InvalidArgument,
               "the file has no weights of the layer '{}', which it names.", layer);
    for (const std::string& name : names_in(*own, "weight_names")) {
      const auto array = own->find(name);
      user_check(array.has_value(), ErrorKind::InvalidArgument,
                 "the file does not have the weight '{}', which it names.", name);
      user_check(entries.size() < kMostArrays, ErrorKind::InvalidArgument,
                 "it has too many weights.");
      entries.push_back({path_of(layer, name), array->tensor()});
    }
  }
  return {std::move(entries), Weights::Ordered};
}

// The arrays of a tree of attributes. Layers only: what an optimizer keeps is of no use.
void collect(const Hdf5Node& group, std::vector<std::string>& path, Entries& entries) {
  user_check(path.size() < kDeepest && entries.size() < kMostArrays, ErrorKind::InvalidArgument,
             "its groups are inside of each other too deeply.");
  for (const std::string& name : group.names()) {
    if (path.empty() && name == "optimizer") continue;
    const auto inner = group.find(name);
    if (!inner) continue;
    path.push_back(name);
    if (inner->is_array())
      entries.push_back({path, inner->tensor()});
    else
      collect(*inner, path, entries);
    path.pop_back();
  }
}

// Keras 2.12 wrote names of groups as "_layer_checkpoint_dependencies\dense".
Entries without_backslashes(Entries entries) {
  for (Weights::Entry& entry : entries) {
    std::vector<std::string> parts;
    for (const std::string& name : entry.path)
      for (const std::string_view part : split(name, '\\')) parts.emplace_back(part);
    entry.path = std::move(parts);
  }
  return entries;
}

Weights placed_weights(const Hdf5Node& root) {
  Entries entries;
  std::vector<std::string> path;
  collect(root, path, entries);
  return {without_backslashes(std::move(entries)), Weights::Placed};
}

Weights weights_in(const Hdf5Node& root) {
  if (const auto inner = root.find("model_weights")) return named_weights(*inner);
  return names_in(root, "layer_names").empty() ? placed_weights(root) : named_weights(root);
}

}  // namespace

int major_version(std::string_view version) { return version.starts_with('3') ? 3 : 2; }

FileParts read_h5_parts(std::string_view file) {
  const Hdf5Node root = Hdf5File(file).root();
  const auto config = root.texts("model_config");
  user_check(
      config && config->size() == 1, ErrorKind::Unsupported,
      "the file has weights, but no architecture (model_config).\nhint: Write both with model.save(\"net.keras\"). "
      "oar.load gives the weights alone.");
  const auto version = root.texts("keras_version");
  return {JsonValue::parse((*config)[0]), weights_in(root),
          major_version(version && !version->empty() ? version->front() : "")};
}

FileParts read_archive_parts(std::string_view file) {
  const ZipFile zip(file);
  const ZipFile::Entry *config = zip.find("config.json"), *weights = zip.find("model.weights.h5");
  user_check(config, ErrorKind::InvalidArgument, "the archive has no config.json.");
  user_check(
      weights, ErrorKind::Unsupported,
      "the archive has no model.weights.h5.\nhint: Oar reads what model.save(\"net.keras\") writes.");
  const std::string content = zip.content(*weights);
  int version = 3;
  if (const ZipFile::Entry* notes = zip.find("metadata.json")) {
    const JsonValue metadata = JsonValue::parse(zip.content(*notes));
    const JsonValue* found = metadata.is_object() ? metadata.find("keras_version") : nullptr;
    if (found && found->is_text()) version = major_version(found->text());
  }
  return {JsonValue::parse(zip.content(*config)), placed_weights(Hdf5File(content).root()),
          version};
}

Weights read_h5_weights(std::string_view file) { return weights_in(Hdf5File(file).root()); }

}  // namespace oar::keras
