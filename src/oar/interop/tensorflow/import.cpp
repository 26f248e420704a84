#include "oar/interop/tensorflow/import.h"

#include <algorithm>
#include <filesystem>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/interop/tensorflow/signature.h"
#include "oar/interop/tensorflow/web_weights.h"

namespace oar::tensorflow {
namespace {

namespace fs = std::filesystem;

fs::path main_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  for (const char* name : {"saved_model.pb", "model.json"})
    if (fs::is_regular_file(path / name, error)) return path / name;
  fail(ErrorKind::NotFound, "'{}' is a folder without saved_model.pb or model.json.",
       path.string());
}

}  // namespace

ReadFile files_in(const std::string& folder) {
  return [folder = fs::path(folder)](const std::string& name) {
    std::error_code error;
    const fs::path root = fs::weakly_canonical(folder.empty() ? fs::path(".") : folder, error),
                   path = fs::weakly_canonical(root / name, error);
    const auto [end, rest] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
    user_check(!error && end == root.end(), ErrorKind::InvalidArgument,
               "the model names the file '{}', which is outside of its folder.", name);
    user_check(fs::is_regular_file(path, error), ErrorKind::NotFound,
               "the model's file '{}' is not in '{}'.", name, folder.string());
    return read_file(path.string());
  };
}

interop::GraphModel read_frozen_graph(std::string_view file, const Wanted& wanted) {
  user_check(!file.empty(), ErrorKind::InvalidArgument, "the file is empty.");
  auto network = std::make_shared<Network>();
  network->graph = parse_graph_def(file);
  choose_ends(*network, {}, wanted);
  return model_of(std::move(network));
}

interop::GraphModel load_model(const std::string& path, const Wanted& wanted) {
  const fs::path file = main_file(path);
  const std::string content = read_file(file.string());
  const ReadFile read = files_in(file.parent_path().string());
  const size_t first = content.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && content[first] == '{')
    return read_web_model(content, read, wanted);
  // A SavedModel begins with its version or a graph with tags, a GraphDef with a node.
  const bool saved = !content.empty() && (content[0] == 0x08 || content[0] == 0x12);
  return saved ? read_saved_model(content, read, wanted) : read_frozen_graph(content, wanted);
}

}  // namespace oar::tensorflow
