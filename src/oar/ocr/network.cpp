#include "oar/ocr/network.h"

#include <filesystem>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/interop/onnx/import.h"
#include "oar/interop/onnx/metadata.h"
#include "oar/ops/gen/copy.h"

namespace oar::ocr {
namespace {

class OnnxNetwork : public Network {
 public:
  OnnxNetwork(const std::string& file, const std::string& folder)
      : model_(file, folder), notes_(onnx::read_metadata(file)) {}

  Tensor run(const Tensor& input) const override {
    const std::vector<Tensor> results = model_.run({input});
    user_check(!results.empty(), ErrorKind::InvalidArgument, "the network has no output.");
    const Tensor& first = results.front();
    return first.is_contiguous() ? first : assign(first);
  }
  const std::map<std::string, std::string>& notes() const override { return notes_; }

 private:
  onnx::Model model_;
  std::map<std::string, std::string> notes_;
};

std::shared_ptr<const Network> load_onnx(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return std::make_shared<OnnxNetwork>(read_file(path), folder.empty() ? "." : folder);
}

struct FileKind {
  const char* ending;
  std::shared_ptr<const Network> (*load)(const std::string& path);
};
constexpr FileKind kKinds[] = {{".onnx", load_onnx}};

}  // namespace

bool is_network_file(const std::string& path) {
  for (const FileKind& kind : kKinds)
    if (path.ends_with(kind.ending)) return true;
  return false;
}

std::shared_ptr<const Network> load_network(const std::string& path) try {
  for (const FileKind& kind : kKinds)
    if (path.ends_with(kind.ending)) return kind.load(path);
  fail(ErrorKind::Unsupported, "its name ends with no known format.\nhint: Pass an `.onnx` file.");
} catch (const Error& error) {
  fail(error.kind(), "the network {} cannot be loaded: {}{}{}", path, error.text(),
       error.hint().empty() ? "" : "\nhint: ", error.hint());
}

}  // namespace oar::ocr
